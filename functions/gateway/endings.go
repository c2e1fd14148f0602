package gateway

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// endingsEvery is how often the one poller looks while anybody waits, or less often where the question
// takes so long that it would be more than a tenth of the time.
const endingsEvery = 50 * time.Millisecond

// endings wakes those who wait for the end of a job, or of an operation: one question for all of them,
// none while nobody waits.
type endings struct {
	ask     func(context.Context, []uuid.UUID) ([]uuid.UUID, error)
	mu      sync.Mutex
	waiting map[uuid.UUID]*waited
	some    chan struct{} // has one value when somebody has come to wait
	closing chan struct{} // closed when nobody looks any more
	trouble telemetry.Trouble
}

type waited struct {
	ended chan struct{}
	by    int
}

func newEndings(ask func(context.Context, []uuid.UUID) ([]uuid.UUID, error)) *endings {
	return &endings{
		ask: ask, waiting: map[uuid.UUID]*waited{}, some: make(chan struct{}, 1), closing: make(chan struct{}),
		trouble: telemetry.Trouble{What: "look for what has ended"},
	}
}

// wait returns when the job has ended, or ctx has, or the process is about to.
func (e *endings) wait(ctx context.Context, id uuid.UUID) {
	w := e.join(id)
	defer e.leave(id, w)
	select {
	case <-w.ended:
	case <-ctx.Done():
	case <-e.closing:
	}
}

func (e *endings) join(id uuid.UUID) *waited {
	e.mu.Lock()
	defer e.mu.Unlock()
	w := e.waiting[id]
	if w == nil {
		w = &waited{ended: make(chan struct{})}
		e.waiting[id] = w
	}
	w.by++
	select {
	case e.some <- struct{}{}:
	default:
	}
	return w
}

func (e *endings) leave(id uuid.UUID, w *waited) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if w.by--; w.by == 0 && e.waiting[id] == w {
		delete(e.waiting, id)
	}
}

func (e *endings) run(ctx context.Context) {
	defer close(e.closing)
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.some:
		}
		for e.anybody() {
			began := time.Now()
			e.look(ctx)
			select {
			case <-ctx.Done():
				return
			case <-time.After(max(endingsEvery, 10*time.Since(began))):
			}
		}
	}
}

func (e *endings) anybody() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.waiting) > 0
}

func (e *endings) look(ctx context.Context) {
	e.mu.Lock()
	ids := make([]uuid.UUID, 0, len(e.waiting))
	for id := range e.waiting {
		ids = append(ids, id)
	}
	e.mu.Unlock()
	slices.SortFunc(ids, func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
	ended, err := e.ask(ctx, ids)
	if ctx.Err() == nil {
		e.trouble.Note(ctx, err, "waiting", len(ids))
	}
	if err != nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, id := range ended {
		if w := e.waiting[id]; w != nil {
			close(w.ended)
			delete(e.waiting, id)
		}
	}
}
