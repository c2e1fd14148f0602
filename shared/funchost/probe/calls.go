package probe

import (
	"fmt"
	"sync"
	"time"
)

// Calls tracks which calls are under way, and since when.
type Calls struct {
	mu    sync.Mutex
	calls map[*call]struct{}
}

type call struct {
	name  string
	began time.Time
}

// Begin notes the start of a call; the returned function notes its end.
func (c *Calls) Begin(name string) (end func()) {
	began := &call{name: name, began: time.Now()}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls == nil {
		c.calls = map[*call]struct{}{}
	}
	c.calls[began] = struct{}{}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.calls, began)
	}
}

// Oldest returns the call that has been under way for longest; zero if there is none.
func (c *Calls) Oldest() (name string, since time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for underWay := range c.calls {
		if since.IsZero() || underWay.began.Before(since) {
			name, since = underWay.name, underWay.began
		}
	}
	return name, since
}

// Alive returns an error if a call has been under way for longer than limit while every external dependency was
// available: then a restart may help. While the database is unavailable a restart does not help, and many processes
// that start at once would delay its return. Each of oldest is a function like Oldest.
func (m *Monitor) Alive(now time.Time, limit time.Duration, oldest ...func() (string, time.Time)) error {
	unavailable := m.LastUnavailable(now)
	for _, of := range oldest {
		name, since := of()
		if since.IsZero() {
			continue
		}
		if since.Before(unavailable) {
			since = unavailable
		}
		if took := now.Sub(since); took > limit {
			return fmt.Errorf("%s has not ended for %s", name, took.Round(time.Second))
		}
	}
	return nil
}
