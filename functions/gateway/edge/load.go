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
	// maxLoad bounds the bodies and the responses in memory. A request needs about three times the size of its body:
	// for decoded values, for the parameters of statements, for events.
	maxLoad = 48 << 20

	// Strangers is the number of places for bodies of unauthenticated senders. A body longer than believedOfStrangers
	// needs a place.
	Strangers = 64
	// StrangersEach is how many of them one address may have.
	StrangersEach = 8
	// StrangerPatience is how long a body waits for a place, and then how long it may take to arrive.
	StrangerPatience = 10 * time.Second
)

const loadKey = "load"

// Load is the part of the memory for bodies and responses that a request has taken.
type Load struct {
	room   *throttle.Room
	caller string
	bytes  int64
}

// Carry gives back the memory of a request when it has been answered.
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

// Take takes more memory for the owner of the request.
func (l *Load) Take(c *gin.Context, bytes int64) error {
	if bytes == 0 {
		return nil
	}
	if l.caller == "" {
		l.caller = CallerOf(c)
	}
	if !l.room.Take(l.caller, bytes) {
		return SlowDownError{"the bodies and responses of this owner need too much memory", time.Second}
	}
	l.bytes += bytes
	return nil
}

// ReadUnknownSender reads a body of at most limit bytes before its sender is authenticated. The caller calls release
// when the authentication has succeeded or failed.
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

// Place waits for a place for a long body of an unauthenticated sender, and then sets a deadline for the body.
func (d *Limits) Place(c *gin.Context) (release func(), err error) {
	ctx, cancel := context.WithTimeout(c.Request.Context(), StrangerPatience)
	defer cancel()
	address, places := CallerAt(RemoteAddr(c)), d.strangers
	if d.Suspects(c) {
		places = d.guessers
	}
	leave, err := places.Acquire(ctx, address)
	if err != nil {
		return nil, SlowDownError{"too many long bodies from unauthenticated senders", time.Second}
	}
	connection := http.NewResponseController(c.Writer)
	_ = connection.SetReadDeadline(time.Now().Add(StrangerPatience)) // the recorder of a test has none
	return func() {
		_ = connection.SetReadDeadline(time.Now().Add(RequestPatience))
		leave()
	}, nil
}

// RequestPatience bounds the work on one request. A response that is held with ?wait= has its own limit.
const RequestPatience = 15 * time.Second

// WithPatience returns the request's context with that limit.
func WithPatience(c *gin.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(c.Request.Context(), RequestPatience)
}
