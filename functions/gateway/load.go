package gateway

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

	// A body whose sender is not known yet needs a place when it is longer than believedOfStrangers.
	strangers, strangersEach = 64, 8
	// strangerPatience is how long it waits for a place, and then may take to come.
	strangerPatience = 10 * time.Second
)

const loadKey = "load"

// load is how much of the memory for bodies and answers a request has.
type load struct {
	room   *throttle.Room
	caller string
	bytes  int64
}

// carrying gives back what a request has taken when it has been answered.
func (f *Function) carrying(c *gin.Context, handle func(*gin.Context) error) error {
	l := &load{room: f.door.load}
	c.Set(loadKey, l)
	defer func() {
		if l.bytes > 0 {
			l.room.Give(l.caller, l.bytes)
		}
	}()
	return handle(c)
}

func loadOf(c *gin.Context) *load {
	l, _ := c.MustGet(loadKey).(*load)
	return l
}

// take takes so much more for the request's owner.
func (l *load) take(c *gin.Context, bytes int64) error {
	if bytes == 0 {
		return nil
	}
	if l.caller == "" {
		l.caller = caller(c)
	}
	if !l.room.Take(l.caller, bytes) {
		return slowDown{"too many bytes of bodies and answers at once", time.Second}
	}
	l.bytes += bytes
	return nil
}

// readStranger reads a body of at most limit bytes whose sender is not known yet. release is to be called when it is
// known, or known to be nobody.
func (f *Function) readStranger(c *gin.Context, limit int64) (body []byte, release func(), err error) {
	release = func() {}
	placed := false
	body, err = readFrom(c, limit, believedOfStrangers, func(int64) error {
		if placed {
			return nil
		}
		placed = true
		place, err := f.door.place(c)
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

// place waits for a place for a stranger's long body, and has the body come soon then.
func (d *door) place(c *gin.Context) (release func(), err error) {
	ctx, cancel := context.WithTimeout(c.Request.Context(), strangerPatience)
	defer cancel()
	address, places := callerAt(remoteAddr(c)), d.strangers
	if !d.failures.Look(address, time.Now()).OK {
		places = d.guessers
	}
	leave, err := places.Acquire(ctx, address)
	if err != nil {
		return nil, slowDown{"too many long bodies without a known sender at once", time.Second}
	}
	connection := http.NewResponseController(c.Writer)
	_ = connection.SetReadDeadline(time.Now().Add(strangerPatience)) // a recorder of a test has none
	return func() {
		_ = connection.SetReadDeadline(time.Now().Add(requestPatience))
		leave()
	}, nil
}
