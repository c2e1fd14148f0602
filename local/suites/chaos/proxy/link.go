package proxy

import (
	"sync"
	"time"
)

// Fault is how a link fails. The zero value is a link that works.
type Fault struct {
	Refuse     bool          // its connections are reset, and new ones too
	StallUp    bool          // no bytes pass from the client to the server, without an error
	StallDown  bool          // no bytes pass from the server to the client
	DropDown   bool          // answers get lost; the connections are reset when the fault ends
	LoseCommit bool          // a COMMIT reaches PostgreSQL, its answer is lost and the connection reset
	HalfClose  bool          // the client reads the end of the stream, and may go on writing
	Delay      time.Duration // of all bytes, each way
}

// Link is the path from one client to one server. All of its connections share one fault.
type Link struct {
	mu      sync.Mutex
	fault   Fault
	changed chan struct{} // closed when the fault changes
	conns   map[*conn]bool
}

// NewLink makes a link that works.
func NewLink() *Link { return &Link{changed: make(chan struct{}), conns: map[*conn]bool{}} }

// Set replaces the fault of the link.
func (l *Link) Set(f Fault) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fault = f
	close(l.changed)
	l.changed = make(chan struct{})
	for c := range l.conns {
		switch {
		case f.Refuse || c.tainted.Load() && !f.DropDown:
			c.reset()
		case f.HalfClose:
			_ = c.client.CloseWrite() // an error means that it has just ended
			c.tainted.Store(true)
		}
	}
}

// Connections returns the number of open connections.
func (l *Link) Connections() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.conns)
}

func (l *Link) now() (Fault, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fault, l.changed
}

func (l *Link) refuses() bool {
	f, _ := l.now()
	return f.Refuse
}

// add returns false if the link has begun to refuse meanwhile.
func (l *Link) add(c *conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fault.Refuse {
		return false
	}
	l.conns[c] = true
	return true
}

func (l *Link) remove(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, c)
}
