package pool

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jobweaver/jobweaver/functions/runjob/handlers"
	"github.com/jobweaver/jobweaver/functions/runjob/turns"
	"github.com/jobweaver/jobweaver/shared/telemetry"
	"github.com/jobweaver/jobweaver/shared/workerdb"
)

const (
	maxAhead      = 1000 // attempts that are held beyond the places
	aheadFor      = 100 * time.Millisecond
	maxAheadBytes = 8 << 20                // bytes of held attempts; with more, no attempt is held beyond the places
	leftFor       = 5 * time.Second        // several heartbeats, which repeat the progress of a waiting attempt
	maxLeft       = 5_000                  // attempts whose progress is repeated
	justNow       = 100 * time.Millisecond // heartbeats leave out attempts that were claimed less long ago
	rateCap       = 20_000
	rateWindow    = 2 * time.Second
	maxLogBytes   = 64 << 10
	maxCode       = 100 // bytes of an error code
)

// Pool owns the attempts that a worker has claimed: those that wait for a slot, those that run, and those whose
// outcome is not yet in the store. Only handlers run in its goroutines.
type Pool struct {
	Silence time.Duration // the age of the last heartbeat at which the pool closes; set before use
	Demand  func() int    // returns the slots that heartbeats report; nil: all; set before use
	// Defers is set if handlers let other processes run their attempts: an attempt starts when its handler calls Start.
	Defers bool

	slots, places int
	clock         clock
	decidedTo     func(Finished) // receives each attempt's outcome, once
	changed       func(room int) // called when a heartbeat would differ from the last one

	mu            sync.Mutex
	work          sync.Cond // an attempt may start, or the pool is stopping
	mine          map[workerdb.Key]*Attempt
	left          []left                 // settled as waiting a short time ago, whose progress may be in no heartbeat yet
	held          *turns.Queue[*Attempt] // those that wait for a slot
	weight        int                    // bytes of the attempts in held
	ahead         int                    // attempts that may be held beyond the places: they are expected to run very soon
	running       []*Attempt             // by slot, until the handler returns, even if the attempt is decided
	busy          int                    // slots
	started       int                    // attempts of these that have started
	timer         *time.Timer
	nextDue       time.Time // when timer calls timeOut; zero: not set
	lastHeartbeat Moment
	openedBy      atomic.Pointer[Moment] // lastHeartbeat, for Fresh
	epoch         int                    // rises with the end of each silence: others may have settled earlier claims
	ending        bool                   // a heartbeat has got through after a silence; the next one opens the pool
	stopping      bool
	draining      bool  // it takes no attempts, as if it were stopping, until it is resumed
	drainVersion  int64 // of the order to drain, or to take attempts again
	meter         meter
}

// New returns a pool with a number of slots and of places for attempts that wait for a slot. It begins silent.
func New(slots, places int, silence time.Duration, decidedTo func(Finished), changed func(int)) *Pool {
	p := &Pool{
		slots: slots, places: places, Silence: silence, clock: clock{sinceBoot}, decidedTo: decidedTo, changed: changed,
		mine: map[workerdb.Key]*Attempt{}, held: turns.New(before), running: make([]*Attempt, slots),
	}
	p.work.L = &p.mu
	return p
}

// Room returns how many attempts may be claimed now. It stays 0 until half of the places are free, so that a busy
// worker claims batches. A worker that gets through many attempts in an instant has places for those, too.
func (p *Pool) Room() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.silent() {
		return 0
	}
	return p.roomNow()
}

// roomNow returns the room of a pool that is not silent. The caller holds the mutex.
func (p *Pool) roomNow() int {
	places := p.places
	if p.weight < maxAheadBytes {
		places += p.ahead
	}
	if p.stopping || p.draining || p.held.Len() > places/2 {
		return 0
	}
	return p.slots - p.busy + places - p.held.Len()
}

// silent reports whether other workers may have settled the attempts of this one as lost by now.
func (p *Pool) silent() bool { return p.silentAt(time.Now()) }

func (p *Pool) silentAt(now time.Time) bool { return p.clock.since(p.lastHeartbeat, now) >= p.Silence }

// Fresh reports whether at least half a silence is left until other workers may settle attempts of this one as lost. It
// is for a handler that lets another process start its attempt, and that process needs some of the time. Fresh takes no
// lock, so it may be called under any.
func (p *Pool) Fresh() bool {
	last := p.openedBy.Load()
	return last != nil && p.clock.since(*last, time.Now()) < p.Silence/2
}

// Answered notes that a heartbeat that began at a moment has got through, and keeps the pool open for another silence.
// It reports whether another heartbeat must follow: after a silence, or if the database has not seen the worker for
// half a silence.
func (p *Pool) Answered(at Moment, unseen time.Duration) (again bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if (p.silent() || unseen >= p.Silence/2) && !p.ending {
		p.ending = true
		p.epoch++
		return true
	}
	p.ending, p.lastHeartbeat = false, at
	p.openedBy.Store(&at)
	p.work.Broadcast()
	return false
}

// Now returns the moment at which a heartbeat begins.
func (p *Pool) Now() Moment { return p.clock.now() }

// Epoch returns the epoch in which a claim begins.
func (p *Pool) Epoch() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.epoch
}

// Known reports for each key whether the pool has its attempt.
func (p *Pool) Known(keys []workerdb.Key) []bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := make([]bool, len(keys))
	for i, key := range keys {
		known[i] = p.mine[key] != nil
	}
	return known
}

// Add adds attempts that were claimed in an epoch, all or none. It refuses those of an earlier epoch: they must be
// claimed again.
func (p *Pool) Add(claimed []*Attempt, epoch int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if epoch != p.epoch || p.silent() {
		return false
	}
	now := time.Now()
	for _, a := range claimed {
		p.take(a, now)
	}
	p.changed(p.roomNow())
	return true
}

// take adds an attempt. If it must not start, it is decided at once. The caller holds the mutex.
func (p *Pool) take(a *Attempt, now time.Time) {
	a.claimedAt = now
	p.mine[a.Key()] = a
	switch {
	case a.Run.Cancel:
		p.decide(a, endedOutcome(a, handlers.ErrCancelled))
		return
	case p.stopping:
		p.decide(a, interrupted(a, "its worker is stopping"))
		return
	case p.draining:
		p.decide(a, interrupted(a, drainingReason))
		return
	case a.Expired(now):
		p.decide(a, expiredOutcome(a))
		return
	case a.GiveBack != nil:
		p.decide(a, givenBackOutcome(a, *a.GiveBack))
		return
	}
	p.held.Push(turns.KeyOf(&a.Run), a)
	p.weight += a.bytes()
	p.work.Signal()
}

// Next ends the attempt of a slot with its outcome, if there is one, waits for the next attempt of the slot, and
// returns that with its context; none when the pool stops. Both are one step, so that a short attempt takes the mutex
// once.
func (p *Pool) Next(
	ctx context.Context, slot int, last *Attempt, outcome workerdb.Outcome,
) (*Attempt, context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if last != nil {
		p.running[slot] = nil
		p.busy--
		if !last.StartedAt.IsZero() {
			p.started--
		}
		p.meter.finish(last.calledAt, outcome.FinishedAt)
		p.decide(last, outcome)
		last.end(nil)
		p.changed(p.roomNow())
	}
	now := time.Now()
	for !p.stopping && !p.ready(now) {
		p.work.Wait()
		now = time.Now()
	}
	if p.stopping {
		if p.timer != nil && p.busy == 0 {
			p.timer.Stop()
		}
		return nil, nil
	}
	a := p.held.Next()
	p.weight -= a.bytes()
	p.running[slot] = a
	p.busy++
	p.meter.start(now)
	a.calledAt = now
	if !p.Defers {
		p.start(a, now)
	} else if !a.ExpiresAt.IsZero() {
		p.watch(a.ExpiresAt, now)
	}
	ctx, a.end = context.WithCancelCause(telemetry.WithLazy(ctx, a))
	p.changed(p.roomNow())
	return a, ctx
}

// start lets the timeout of an attempt begin. The caller holds the mutex.
func (p *Pool) start(a *Attempt, now time.Time) {
	a.StartedAt, a.dueAt = now, now.Add(a.timeout())
	p.started++
	p.watch(a.dueAt, now)
}

// Start is called by the handler of a pool that Defers, when another process is about to start the attempt. It reports
// whether the attempt may start: it may not if it was cancelled, has expired, or is over.
func (p *Pool) Start(a *Attempt) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if a.decided || a.cancelled || !a.StartedAt.IsZero() || p.silentAt(now) {
		return false
	}
	if a.Expired(now) {
		p.expire(a)
		return false
	}
	p.start(a, now)
	p.changed(p.roomNow())
	return true
}

// expire decides an attempt whose handler was called and that has not started. The caller holds the mutex.
func (p *Pool) expire(a *Attempt) {
	p.decide(a, expiredOutcome(a))
	a.end(handlers.ErrCancelled)
}

// ready reports whether an attempt may start now, after it has decided expired attempts in front of it. The caller
// holds the mutex.
func (p *Pool) ready(now time.Time) bool {
	if p.silentAt(now) {
		return false
	}
	for p.held.Len() > 0 && p.held.First().Expired(now) {
		p.decide(p.held.First(), expiredOutcome(p.held.First()))
	}
	return p.held.Len() > 0
}

// decide sets the outcome of an attempt; only the first one counts. The caller holds the mutex.
func (p *Pool) decide(a *Attempt, outcome workerdb.Outcome) {
	if a.decided {
		return
	}
	p.finish(a, Finished{Outcome: outcome})
}

func (p *Pool) finish(a *Attempt, f Finished) {
	a.decided = true
	if p.held.Remove(turns.KeyOf(&a.Run), a) {
		p.weight -= a.bytes()
	}
	f.Attempt, f.From = a, a.From
	p.decidedTo(f)
	p.changed(p.roomNow())
}

// Settled removes attempts whose outcome is in the store, where later orders find it.
func (p *Pool) Settled(keys []workerdb.Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, key := range keys {
		delete(p.mine, key)
	}
}
