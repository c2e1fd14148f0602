package throttle

import "sync"

// Held counts what callers hold at once.
type Held struct {
	most int

	mu   sync.Mutex
	held map[string]int
}

// NewHeld lets each caller hold so many at once.
func NewHeld(most int) *Held { return &Held{most: most, held: map[string]int{}} }

// Hold is false for a caller who holds as many as it may; else release is to be called, once.
func (h *Held) Hold(caller string) (release func(), ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.held[caller] >= h.most {
		return nil, false
	}
	h.held[caller]++
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.held[caller]--; h.held[caller] == 0 {
			delete(h.held, caller)
		}
	}, true
}
