package funchost

import (
	"fmt"
	"sync"
	"time"
)

// stuckAfter is how long one call may take before the process is better started again. A database or
// a broker that is away makes many short calls, not a long one.
const stuckAfter = 10 * time.Minute

// watch knows which calls are under way, and since when.
type watch struct {
	mu    sync.Mutex
	calls map[*call]struct{}
}

type call struct {
	what  string
	began time.Time
}

// begin notes a call; the returned function notes its end.
func (w *watch) begin(what string) (end func()) {
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

// stuck is an error when a call has been under way for too long.
func (w *watch) stuck(now time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.calls {
		if took := now.Sub(c.began); took > stuckAfter {
			return fmt.Errorf("%s has not returned for %s", c.what, took.Round(time.Second))
		}
	}
	return nil
}
