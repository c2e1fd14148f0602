package gateway

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/telemetry"
)

const (
	// endingsEvery is how often the one poller looks while anybody waits, or less often where the question
	// takes so long that it would be more than a tenth of the time.
	endingsEvery = 50 * time.Millisecond
	// endingsSeldom is the same while ends are told: the poll finds what was told to nobody.
	endingsSeldom = 500 * time.Millisecond

	// mostRecent bounds how many of the jobs that have ended are remembered, of which nobody waits for.
	mostRecent = 2_000
)

// endings wakes those who wait for the end of a job, or of an operation: one question for all of them,
// none while nobody waits. Ends that are told are looked at at once. The poll is for all others.
type endings struct {
	ask     func(context.Context, []uuid.UUID) ([]uuid.UUID, error)
	isTold  func() bool // whether ends are told at the moment
	every   time.Duration
	seldom  time.Duration // in place of every while ends are told
	mu      sync.Mutex
	waiting map[uuid.UUID]*waited
	told    map[uuid.UUID]bool // of those who are waited for
	all     bool               // any of them may have ended
	recent  [2]map[uuid.UUID]bool
	some    chan struct{} // has one value when somebody has come to wait
	woken   chan struct{} // has one value when told or all is to be looked at
	closing chan struct{} // closed when nobody looks any more
	trouble telemetry.Trouble
}

type waited struct {
	ended chan struct{}
	by    int
}

func newEndings(ask func(context.Context, []uuid.UUID) ([]uuid.UUID, error), isTold func() bool) *endings {
	return &endings{
		ask: ask, isTold: isTold, every: endingsEvery, seldom: endingsSeldom,
		waiting: map[uuid.UUID]*waited{}, told: map[uuid.UUID]bool{},
		some: make(chan struct{}, 1), woken: make(chan struct{}, 1), closing: make(chan struct{}),
		trouble: telemetry.Trouble{What: "look for what has ended"},
	}
}

// never is for things whose ends are told to nobody.
func never() bool { return false }

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
	rouse(e.some)
	if e.recent[0][id] || e.recent[1][id] { // its end was told between its being read and now
		e.told[id] = true
		rouse(e.woken)
	}
	return w
}

// rouse fills a channel that has room for one value.
func rouse(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (e *endings) leave(id uuid.UUID, w *waited) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if w.by--; w.by == 0 && e.waiting[id] == w {
		delete(e.waiting, id)
		delete(e.told, id)
	}
}

// tell has these looked at, which are told to have ended: perhaps in a version that is over.
func (e *endings) tell(ids []uuid.UUID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, id := range ids {
		if e.waiting[id] != nil {
			e.told[id] = true
			continue
		}
		if len(e.recent[0]) >= mostRecent || e.recent[0] == nil {
			e.recent = [2]map[uuid.UUID]bool{{}, e.recent[0]}
		}
		e.recent[0][id] = true
	}
	if len(e.told) > 0 {
		rouse(e.woken)
	}
}

// tellAll has all looked at: nobody says which have ended.
func (e *endings) tellAll() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = true
	rouse(e.woken)
}

func (e *endings) run(ctx context.Context) {
	defer close(e.closing)
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.some:
		}
		for e.anybody() && ctx.Err() == nil {
			began := time.Now()
			e.look(ctx, e.everything())
			every := e.every
			if e.isTold() {
				every = e.seldom
			}
			e.hear(ctx, max(every, 10*time.Since(began)))
		}
	}
}

// hear looks at the jobs that notifications name as ended, for so long, or until it has to look at all.
func (e *endings) hear(ctx context.Context, d time.Duration) {
	over := time.NewTimer(d)
	defer over.Stop()
	for e.anybody() {
		select {
		case <-ctx.Done():
			return
		case <-over.C:
			return
		case <-e.woken:
		}
		told, all := e.takeTold()
		if all {
			return
		}
		if len(told) > 0 {
			e.look(ctx, told)
		}
	}
}

func (e *endings) takeTold() (told []uuid.UUID, all bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	told, all = slices.Collect(maps.Keys(e.told)), e.all
	clear(e.told)
	e.all = false
	return told, all
}

func (e *endings) everything() []uuid.UUID {
	e.mu.Lock()
	defer e.mu.Unlock()
	clear(e.told)
	e.all = false
	return slices.Collect(maps.Keys(e.waiting))
}

func (e *endings) anybody() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.waiting) > 0
}

func (e *endings) look(ctx context.Context, ids []uuid.UUID) {
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
