package throttle

import "sync"

// InUse limits how much each caller may use at once.
type InUse struct {
	most int

	mu   sync.Mutex
	used map[string]int
}

// NewInUse makes an InUse that allows each caller to use most at once.
func NewInUse(most int) *InUse { return &InUse{most: most, used: map[string]int{}} }

// Take returns false if the caller already uses the most. Otherwise the caller calls release once.
func (u *InUse) Take(caller string) (release func(), ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.used[caller] >= u.most {
		return nil, false
	}
	u.used[caller]++
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		if u.used[caller]--; u.used[caller] == 0 {
			delete(u.used, caller)
		}
	}, true
}
