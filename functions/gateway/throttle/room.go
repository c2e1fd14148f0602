package throttle

import "sync"

// Room is an amount, such as of memory, of which callers take parts. A caller never gets more than it leaves free: a
// single caller gets half, the next one half of the rest, so there is always room for a caller that needs little.
type Room struct {
	size int64

	mu    sync.Mutex
	taken int64
	by    map[string]int64
}

// NewRoom makes a room of a size.
func NewRoom(size int64) *Room { return &Room{size: size, by: map[string]int64{}} }

// Fits reports whether a caller could take n.
func (r *Room) Fits(caller string, n int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.fits(caller, n)
}

func (r *Room) fits(caller string, n int64) bool { return r.by[caller]+n <= r.size-r.taken-n }

// Take returns false if the caller cannot have n. Otherwise it is given back with Give.
func (r *Room) Take(caller string, n int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.fits(caller, n) {
		return false
	}
	r.by[caller] += n
	r.taken += n
	return true
}

// Owe takes n for a caller even if the caller cannot have it. It gets nothing more until it has given enough back.
func (r *Room) Owe(caller string, n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.by[caller] += n
	r.taken += n
}

// Give gives back a part that a caller has taken.
func (r *Room) Give(caller string, n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.taken -= n
	if r.by[caller] -= n; r.by[caller] == 0 {
		delete(r.by, caller)
	}
}
