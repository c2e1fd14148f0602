package throttle

import "sync"

// Held limits how much each caller may hold at once.
type Held struct {
	most int

	mu   sync.Mutex
	held map[string]int
}

// NewHeld makes a Held that allows each caller to hold most at once.
func NewHeld(most int) *Held { return &Held{most: most, held: map[string]int{}} }

// Hold returns false if the caller already holds the most. Otherwise the caller calls release once.
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
