package edge

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/jobweaver/jobweaver/functions/gateway/throttle"
)

const (
	// maxLoad bounds the bodies and the answers in memory at once. A request needs about three times as much as its
	// body has: what is decoded, what goes to the database, the events.
	maxLoad = 48 << 20

	// Strangers is how many places there are for bodies of unauthenticated senders. A body needs one when it is longer
	// than believedOfStrangers.
	Strangers = 64
	// StrangersEach is how many of them one address may have.
	StrangersEach = 8
	// StrangerPatience is how long it waits for a place, and then may take to come.
	StrangerPatience = 10 * time.Second
)

const loadKey = "load"

// Load is how much of the memory for bodies and answers a request has.
type Load struct {
	room   *throttle.Room
	caller string
	bytes  int64
}

// Carry gives back what a request has taken when it has been answered.
func (d *Limits) Carry(c *gin.Context, handle func(*gin.Context) error) error {
	l := &Load{room: d.load}
	c.Set(loadKey, l)
	defer func() {
		if l.bytes > 0 {
			l.room.Give(l.caller, l.bytes)
		}
	}()
	return handle(c)
}

// LoadOf returns the memory that a request has taken.
func LoadOf(c *gin.Context) *Load {
	l, _ := c.MustGet(loadKey).(*Load)
	return l
}

// Take takes so much more for the request's owner.
func (l *Load) Take(c *gin.Context, bytes int64) error {
	if bytes == 0 {
		return nil
	}
	if l.caller == "" {
		l.caller = CallerOf(c)
	}
	if !l.room.Take(l.caller, bytes) {
		return SlowDownError{"too many bytes of bodies and answers at once", time.Second}
	}
	l.bytes += bytes
	return nil
}

// ReadUnknownSender reads a body of at most limit bytes before the sender is authenticated. The caller calls release
// once it is, or once that has failed.
func (d *Limits) ReadUnknownSender(c *gin.Context, limit int64) (body []byte, release func(), err error) {
	release = func() {}
	placed := false
	body, err = readFrom(c, limit, believedOfStrangers, func(int64) error {
		if placed {
			return nil
		}
		placed = true
		place, err := d.Place(c)
		if err == nil {
			release = place
		}
		return err
	})
	if err != nil {
		release()
		return nil, nil, err
	}
	return body, sync.OnceFunc(release), nil
}

// Place waits for a place for a stranger's long body, and has the body come soon then.
func (d *Limits) Place(c *gin.Context) (release func(), err error) {
	ctx, cancel := context.WithTimeout(c.Request.Context(), StrangerPatience)
	defer cancel()
	address, places := CallerAt(RemoteAddr(c)), d.strangers
	if d.Suspects(c) {
		places = d.guessers
	}
	leave, err := places.Acquire(ctx, address)
	if err != nil {
		return nil, SlowDownError{"too many long bodies without a known sender at once", time.Second}
	}
	connection := http.NewResponseController(c.Writer)
	_ = connection.SetReadDeadline(time.Now().Add(StrangerPatience)) // a recorder of a test has none
	return func() {
		_ = connection.SetReadDeadline(time.Now().Add(RequestPatience))
		leave()
	}, nil
}

// RequestPatience bounds the work on one request; an answer that is held with ?wait= counts its own.
const RequestPatience = 15 * time.Second

// WithPatience is the request's context with a limit.
func WithPatience(c *gin.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(c.Request.Context(), RequestPatience)
}
