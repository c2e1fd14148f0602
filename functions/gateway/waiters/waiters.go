// Package waiters wakes requests that wait for the end of a job or of an operation.
package waiters

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
	// pollEvery is how often the poller reads while any request waits. If a read takes more than a tenth of that time,
	// it reads less often.
	pollEvery = 50 * time.Millisecond
	// pollSeldom is the same while ends are notified: the poll then only finds ends whose notification was lost.
	pollSeldom = 500 * time.Millisecond

	// maxRecent bounds how many notified ends are remembered for which no request waits yet.
	maxRecent = 2_000
)

// Waiters wakes requests that wait for an end. One query reads the ends for all of them, and none runs while no
// request waits. An end that is notified is read at once. The poll finds all others.
type Waiters struct {
	readEnded  func(context.Context, []uuid.UUID) ([]uuid.UUID, error)
	isNotified func() bool // whether ends are notified at the moment
	every      time.Duration
	seldom     time.Duration // the interval while ends are notified; otherwise it is every
	mu         sync.Mutex
	waiting    map[uuid.UUID]*waiter
	notified   map[uuid.UUID]bool // of those that are waited for
	all        bool               // any of them may have ended
	recent     [2]map[uuid.UUID]bool
	come       chan struct{} // has one value when a request has begun to wait
	woken      chan struct{} // has one value when notified or all has to be read
	closing    chan struct{} // closed when Run has ended
	trouble    telemetry.Trouble
}

// waiter is one job or operation, and how many requests wait for its end.
type waiter struct {
	ended    chan struct{}
	requests int
}

// New makes waiters that find ends with readEnded, which returns those of the ids that have ended. isNotified reports
// whether Notify is called for ends at the moment.
func New(readEnded func(context.Context, []uuid.UUID) ([]uuid.UUID, error), isNotified func() bool) *Waiters {
	return &Waiters{
		readEnded: readEnded, isNotified: isNotified, every: pollEvery, seldom: pollSeldom,
		waiting: map[uuid.UUID]*waiter{}, notified: map[uuid.UUID]bool{},
		come: make(chan struct{}, 1), woken: make(chan struct{}, 1), closing: make(chan struct{}),
		trouble: telemetry.Trouble{What: "read which jobs and operations have ended"},
	}
}

// Never is the isNotified for ends that are never notified.
func Never() bool { return false }

// Closing is closed when the process is about to end.
func (w *Waiters) Closing() <-chan struct{} { return w.closing }

// Wait returns when the job has ended, or ctx has, or the process is about to.
func (w *Waiters) Wait(ctx context.Context, id uuid.UUID) {
	own := w.join(id)
	defer w.leave(id, own)
	select {
	case <-own.ended:
	case <-ctx.Done():
	case <-w.closing:
	}
}

func (w *Waiters) join(id uuid.UUID) *waiter {
	w.mu.Lock()
	defer w.mu.Unlock()
	own := w.waiting[id]
	if own == nil {
		own = &waiter{ended: make(chan struct{})}
		w.waiting[id] = own
	}
	own.requests++
	signal(w.come)
	if w.recent[0][id] || w.recent[1][id] { // notified after the request had read the job and before it came here
		w.notified[id] = true
		signal(w.woken)
	}
	return own
}

// signal fills a channel that has room for one value.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (w *Waiters) leave(id uuid.UUID, own *waiter) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if own.requests--; own.requests == 0 && w.waiting[id] == own {
		delete(w.waiting, id)
		delete(w.notified, id)
	}
}

// Notify makes the waiters read these jobs soon, because a notification names them as ended. The notification may be
// about an earlier version of a job.
func (w *Waiters) Notify(ids []uuid.UUID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range ids {
		if w.waiting[id] != nil {
			w.notified[id] = true
			continue
		}
		if len(w.recent[0]) >= maxRecent || w.recent[0] == nil {
			w.recent = [2]map[uuid.UUID]bool{{}, w.recent[0]}
		}
		w.recent[0][id] = true
	}
	if len(w.notified) > 0 {
		signal(w.woken)
	}
}

// NotifyAll makes the waiters read all jobs soon, because any of them may have ended.
func (w *Waiters) NotifyAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = true
	signal(w.woken)
}

// Run wakes waiting requests until ctx ends.
func (w *Waiters) Run(ctx context.Context) {
	defer close(w.closing)
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.come:
		}
		for w.any() && ctx.Err() == nil {
			began := time.Now()
			w.read(ctx, w.takeAll())
			every := w.every
			if w.isNotified() {
				every = w.seldom
			}
			w.readNotified(ctx, max(every, 10*time.Since(began)))
		}
	}
}

// readNotified reads the jobs that notifications name as ended, for d, or until all have to be read.
func (w *Waiters) readNotified(ctx context.Context, d time.Duration) {
	over := time.NewTimer(d)
	defer over.Stop()
	for w.any() {
		select {
		case <-ctx.Done():
			return
		case <-over.C:
			return
		case <-w.woken:
		}
		notified, all := w.takeNotified()
		if all {
			return
		}
		if len(notified) > 0 {
			w.read(ctx, notified)
		}
	}
}

func (w *Waiters) takeNotified() (notified []uuid.UUID, all bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	notified, all = slices.Collect(maps.Keys(w.notified)), w.all
	clear(w.notified)
	w.all = false
	return notified, all
}

func (w *Waiters) takeAll() []uuid.UUID {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.notified)
	w.all = false
	return slices.Collect(maps.Keys(w.waiting))
}

func (w *Waiters) any() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.waiting) > 0
}

func (w *Waiters) read(ctx context.Context, ids []uuid.UUID) {
	slices.SortFunc(ids, func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
	ended, err := w.readEnded(ctx, ids)
	if ctx.Err() == nil {
		w.trouble.Note(ctx, err, "waiting", len(ids))
	}
	if err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range ended {
		if own := w.waiting[id]; own != nil {
			close(own.ended)
			delete(w.waiting, id)
		}
	}
}
