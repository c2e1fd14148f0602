package funchost

import (
	"fmt"
	"sync"
	"time"
)

// defaultStuckAfter is longer than whatever a handler or a tick does in one go may take.
const defaultStuckAfter = 10 * time.Minute

// Calls knows which calls are under way, and since when.
type Calls struct {
	mu    sync.Mutex
	calls map[*call]struct{}
}

type call struct {
	what  string
	began time.Time
}

// Begin notes a call; the returned function notes its end.
func (w *Calls) Begin(what string) (end func()) {
	c := &call{what: what, began: time.Now()}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.calls == nil {
		w.calls = map[*call]struct{}{}
	}
	w.calls[c] = struct{}{}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.calls, c)
	}
}

// Oldest is the call that has been under way for longest; zero where there is none.
func (w *Calls) Oldest() (what string, since time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.calls {
		if since.IsZero() || c.began.Before(since) {
			what, since = c.what, c.began
		}
	}
	return what, since
}

// alive is an error when something has been under way for too long although all that it could wait for outside was
// there: then the process is better started again. It must not be because the database is away: starting again would
// not bring that back, and many that start at once would hold it up when it comes.
func (h *host) alive(now time.Time) error {
	away := h.care.lastAway(now)
	asked := []func() (string, time.Time){h.calls.Oldest}
	if h.f.Oldest != nil {
		asked = append(asked, h.f.Oldest)
	}
	for _, oldest := range asked {
		what, since := oldest()
		if since.IsZero() {
			continue
		}
		if since.Before(away) {
			since = away
		}
		if took := now.Sub(since); took > h.cfg.StuckAfter {
			return fmt.Errorf("%s has not ended for %s", what, took.Round(time.Second))
		}
	}
	return nil
}
