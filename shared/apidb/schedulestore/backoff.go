package schedulestore

import (
	"sync"
	"time"

	"github.com/google/uuid"
)

const (
	// A schedule that could not fire is tried again after a delay, which doubles each time.
	heldFirst = time.Second
	heldMost  = time.Minute
)

// heldSchedules holds the schedules that could not fire, and when each is tried again.
type heldSchedules struct {
	mu sync.Mutex
	of map[uuid.UUID]heldSchedule
}

type heldSchedule struct {
	until time.Time
	wait  time.Duration
}

// hold delays the next try of a schedule, and returns for how long.
func (h *heldSchedules) hold(id uuid.UUID) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.of == nil {
		h.of = map[uuid.UUID]heldSchedule{}
	}
	wait := min(max(2*h.of[id].wait, heldFirst), heldMost)
	h.of[id] = heldSchedule{until: time.Now().Add(wait), wait: wait}
	return wait
}

// free forgets the failures of schedules.
func (h *heldSchedules) free(ids []uuid.UUID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, id := range ids {
		delete(h.of, id)
	}
}

// now returns the schedules that wait for their next try, never nil, and how long until the first of them is tried
// again, at most idle. A schedule that has not been due for a while is forgotten: it may be deleted.
func (h *heldSchedules) now(idle time.Duration) (ids []uuid.UUID, again time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	ids, again = []uuid.UUID{}, idle
	for id, held := range h.of {
		switch left := time.Until(held.until); {
		case left > 0:
			ids, again = append(ids, id), min(again, left)
		case left < -heldMost:
			delete(h.of, id)
		}
	}
	return ids, again
}
