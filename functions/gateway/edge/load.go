package edge

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/jobweaver/jobweaver/functions/gateway/throttle"
	"github.com/jobweaver/jobweaver/shared/apidb"
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

const (
	// freeRead is how much a request may read from the database before that counts: a single job that is not large.
	freeRead = 16 << 10
	// freeAnswer is the same for an answer. A connection has buffers of that size anyway.
	freeAnswer = 4 << 10
	// heldBytes is what a held request counts: a third of the stacks and buffers that it takes, because each counted
	// byte stands for about three.
	heldBytes = 16 << 10
)

// Load is the part of the memory for bodies and responses that a request has taken: for its body, for the rows that it
// reads, and for its answer until the client has read that.
type Load struct {
	c    *gin.Context
	room *throttle.Room

	mu     sync.Mutex
	caller string
	bytes  int64
	free   int64 // that may still be read without being counted
	spare  int64 // that was taken for the answer, with the rows that it shows
	over   bool  // the request has been answered, but a read that others share may go on
}

// Carry gives back the memory of a request when it has been answered. All rows that the request reads are counted.
func (d *Limits) Carry(c *gin.Context, handle func(*gin.Context) error) error {
	l := &Load{c: c, room: d.load, free: freeRead}
	c.Set(loadKey, l)
	c.Request = c.Request.WithContext(apidb.WithMeter(c.Request.Context(), l.read))
	defer l.end()
	return handle(c)
}

// LoadOf returns the memory that a request has taken.
func LoadOf(c *gin.Context) *Load {
	l, _ := c.MustGet(loadKey).(*Load)
	return l
}

// Take takes more memory for the owner of the request.
func (l *Load) Take(bytes int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.take(bytes)
}

// Reserve is Take for what a write is about to read and answer: once it is committed, it must not be refused.
func (l *Load) Reserve(bytes int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.take(bytes)
	if err == nil {
		l.free, l.spare = l.free+bytes, l.spare+bytes
	}
	return err
}

// Hold takes the memory of a request whose response is held.
func (l *Load) Hold() error { return l.Take(heldBytes) }

// Drop gives back what the request has taken, before it waits.
func (l *Load) Drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop()
}

// Await is Take for what has left its source already: it waits until there is memory.
func (l *Load) Await(ctx context.Context, bytes int64) error {
	again := time.NewTicker(awaitEvery)
	defer again.Stop()
	for {
		err := l.Take(bytes)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-again.C:
		}
	}
}

// awaitEvery is the time between two tries of Await.
const awaitEvery = 20 * time.Millisecond

// read counts rows of the database, before they are decoded. For a read it counts as much for the answer that shows
// them: if that were counted later, several large reads at once could all read their rows, and all be refused.
func (l *Load) read(bytes int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.over: // its context is another request's
		return nil
	case bytes <= l.free:
		l.free -= bytes
		return nil
	}
	if !isRead(l.c) {
		return l.take(bytes)
	}
	err := l.take(2 * bytes)
	if err == nil {
		l.spare += bytes
	}
	return err
}

// answer counts memory of an answer. What must not be refused is counted all the same.
func (l *Load) answer(bytes int64, must bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	spare := min(l.spare, bytes)
	l.spare -= spare
	if bytes -= spare; !must {
		return l.take(bytes)
	}
	l.room.Owe(l.named(), bytes)
	l.bytes += bytes
	return nil
}

func (l *Load) take(bytes int64) error {
	switch {
	case bytes == 0 || l.over:
		return nil
	case !l.room.Take(l.named(), bytes):
		return SlowDownError{"the bodies and responses of this owner need too much memory", time.Second}
	}
	l.bytes += bytes
	return nil
}

func (l *Load) named() string {
	if l.caller == "" {
		l.caller = CallerOf(l.c)
	}
	return l.caller
}

func (l *Load) drop() {
	if l.bytes > 0 {
		l.room.Give(l.caller, l.bytes)
	}
	l.bytes, l.spare = 0, 0
}

func (l *Load) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop()
	l.over = true
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
