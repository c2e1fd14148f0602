package runjob

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"github.com/jobweaver/jobweaver/functions/runjob/handlers"
	"github.com/jobweaver/jobweaver/shared/telemetry"
	"github.com/jobweaver/jobweaver/shared/workerdb"
)

// pool owns the attempts that this worker has claimed: those that wait for a slot, those that run, and those whose
// outcome is not yet in the store. Only handlers run in its goroutines.
//
// A worker whose last heartbeat is older than the silence, 10 s by the database's clock, is silent. Other workers then
// settle its attempts as lost, and these may run elsewhere. So a worker that was cut off must start none of them. It
// does not see the database's clock, so this is how the pool keeps to that:
//
//  1. Each heartbeat writes the worker's row, lists its attempts, and returns those that were settled by others. When
//     it has got through, lastBeat is the moment at which it began. The database stored a later instant. So this
//     worker counts itself as silent before any other does, even if the answer took long.
//  2. While it is silent, nothing starts (ready), nothing is claimed (room), and a claim that comes back is refused
//     (add). What runs goes on: promise 2 of docs/design.md allows that, and its outcome is refused if it was declared
//     lost.
//  3. The first heartbeat after a silence gets through. Its answer names the attempts that it listed and that others
//     have settled; taken ends these. But an attempt can be missing from the list: its claim inserted the row, the
//     worker was cut off for more than 10 s, another worker settled the attempt as lost, this worker listed what it
//     had, and only then did the claim's answer arrive. So the pool stays closed: beaten sets ending, raises the
//     epoch, and has a second heartbeat follow at once.
//  4. Every claim notes the epoch in which it began. add refuses one of an earlier epoch, and the claim is repeated:
//     it reads the rows again, and finds such an attempt settled.
//  5. The second heartbeat lists all attempts of the pool, and no attempt of an earlier epoch can come in any more.
//     When it has got through, ending is reset, lastBeat is set, and what waits for a slot may start.
//
// If the second heartbeat fails, ending stays set: the next one that gets through opens the pool. A gap of half a
// silence that only the database saw, because a clock was stepped or a machine stood still, raises the epoch too and
// asks for a second heartbeat: others may have counted it as more. A pool begins silent, as lastBeat is zero, so it
// takes two heartbeats to open.
type pool struct {
	slots, places int
	silence       time.Duration
	clock         clock
	decidedTo     func(finished) // takes each attempt's outcome, once
	changed       func(room int) // something that a beat says is different
	demand        func() int     // how many of the slots count at the moment; nil: all

	mu       sync.Mutex
	work     sync.Cond // something may start, or the pool is stopping
	mine     map[workerdb.Key]*attempt
	left     []left // settled lately as waiting, with the progress that may be in no beat yet
	held     held
	weight   int        // bytes of the payloads in held
	ahead    int        // attempts that may be held beyond the places, because they will be run in no time
	running  []*attempt // by slot, until the handler returns, even if its attempt is decided
	busy     int        // slots
	timer    *time.Timer
	nextDue  time.Time // when timer calls timeOut; zero: not set
	lastBeat moment
	epoch    int  // rises with the end of each silence: what was claimed before may have been settled as lost
	ending   bool // a heartbeat has got through after a silence; the next one opens the pool
	stopping bool
	meter    meter
}

func newPool(slots, places int, silence time.Duration, decidedTo func(finished), changed func(int)) *pool {
	p := &pool{
		slots: slots, places: places, silence: silence, clock: clock{sinceBoot}, decidedTo: decidedTo, changed: changed,
		mine: map[workerdb.Key]*attempt{}, running: make([]*attempt, slots),
	}
	p.work.L = &p.mu
	return p
}

// room returns how many attempts may be claimed now. It stays 0 until half of the places are free, so that a busy
// worker claims batches. A worker that gets through many attempts in an instant has places for those, too.
func (p *pool) room() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.silent() {
		return 0
	}
	return p.roomNow()
}

// roomNow is room while there is no silence. The caller holds the mutex.
func (p *pool) roomNow() int {
	places := p.places
	if p.weight < maxAheadBytes {
		places += p.ahead
	}
	if p.stopping || len(p.held) > places/2 {
		return 0
	}
	return p.slots - p.busy + places - len(p.held)
}

// silent reports whether other workers may by now have settled the attempts of this one as lost.
func (p *pool) silent() bool { return p.silentAt(time.Now()) }

func (p *pool) silentAt(now time.Time) bool { return p.clock.since(p.lastBeat, now) >= p.silence }

// beaten notes that a heartbeat which began at a moment has got through, and keeps the pool open for another while.
// After a silence, or if the database has not seen the worker for half of one, it reports that another heartbeat has to
// follow.
func (p *pool) beaten(at moment, unseen time.Duration) (again bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if (p.silent() || unseen >= p.silence/2) && !p.ending {
		p.ending = true
		p.epoch++
		return true
	}
	p.ending, p.lastBeat = false, at
	p.work.Broadcast()
	return false
}

// now returns the epoch in which a claim begins.
func (p *pool) now() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.epoch
}

// known says of each whether its attempt is here.
func (p *pool) known(orders []ordered) []bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := make([]bool, len(orders))
	for i := range orders {
		known[i] = p.mine[orders[i].key()] != nil
	}
	return known
}

// knownKeys says of each key whether its attempt is here.
func (p *pool) knownKeys(keys []workerdb.Key) []bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := make([]bool, len(keys))
	for i, key := range keys {
		known[i] = p.mine[key] != nil
	}
	return known
}

// add takes attempts that were claimed in an epoch, all or none. It refuses those of an earlier epoch: their rows have
// to be read again.
func (p *pool) add(claimed []*attempt, epoch int) bool {
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

// take holds an attempt. One that must not start is decided at once. The caller holds the mutex.
func (p *pool) take(a *attempt, now time.Time) {
	a.claimedAt, a.place = now, -1
	p.mine[a.key()] = a
	switch {
	case a.run.Cancel:
		p.decide(a, endedOutcome(a, handlers.ErrCancelled))
		return
	case p.stopping:
		p.decide(a, interrupted(a, "its worker is stopping"))
		return
	case a.expired(now):
		p.decide(a, expiredOutcome(a))
		return
	}
	heap.Push(&p.held, a)
	p.weight += len(a.run.Payload)
	p.work.Signal()
}

// next frees a slot of the attempt whose handler has come back, if any, with the outcome that this
// gives it, waits for another one to run there, and gives that with its context; none when the pool
// stops. It is one step, so that a small attempt costs the mutex once.
func (p *pool) next(
	ctx context.Context, slot int, last *attempt, outcome workerdb.Outcome,
) (*attempt, context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if last != nil {
		p.running[slot] = nil
		p.busy--
		p.meter.finish(last.startedAt, outcome.FinishedAt)
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
	a := heap.Pop(&p.held).(*attempt)
	p.weight -= len(a.run.Payload)
	p.running[slot] = a
	p.busy++
	p.meter.start(now)
	a.startedAt, a.dueAt = now, now.Add(a.timeout())
	p.watch(a.dueAt, now)
	ctx, a.end = context.WithCancelCause(telemetry.WithLazy(ctx, a))
	p.changed(p.roomNow())
	return a, ctx
}

// ready says whether an attempt may start now, and settles those before it for which it is too late. The
// caller holds the mutex.
func (p *pool) ready(now time.Time) bool {
	if p.silentAt(now) {
		return false
	}
	for len(p.held) > 0 && p.held[0].expired(now) {
		p.decide(p.held[0], expiredOutcome(p.held[0]))
	}
	return len(p.held) > 0
}

// decide gives an attempt its outcome; only the first counts. The caller holds the mutex.
func (p *pool) decide(a *attempt, outcome workerdb.Outcome) {
	if a.decided {
		return
	}
	p.finish(a, finished{outcome: outcome})
}

func (p *pool) finish(a *attempt, f finished) {
	a.decided = true
	if a.place >= 0 {
		heap.Remove(&p.held, a.place)
		p.weight -= len(a.run.Payload)
	}
	f.attempt, f.from = a, a.from
	p.decidedTo(f)
	p.changed(p.roomNow())
}

// settled forgets attempts whose outcome is in the store: who asks for them now is answered there.
func (p *pool) settled(keys []workerdb.Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, key := range keys {
		delete(p.mine, key)
	}
}
