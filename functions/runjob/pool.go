package runjob

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"github.com/jobweaver/jobweaver/functions/runjob/handlers"
	"github.com/jobweaver/jobweaver/shared/workerdb"
)

// pool owns the attempts that this worker has claimed: those that wait for a slot, those that run, and
// those whose outcome is not yet in the store. Only handlers run in its goroutines.
type pool struct {
	slots, places int
	silence       time.Duration
	decidedTo     func(finished) // takes each attempt's outcome, once
	changed       func()         // something that a beat says, or that makes room, is different

	mu       sync.Mutex
	work     sync.Cond // something may start, or the pool is stopping
	mine     map[workerdb.Key]*attempt
	held     held
	running  map[*attempt]struct{} // until the handler returns, even if its attempt is decided
	lastBeat time.Time
	era      int  // rises with the end of each silence: what was claimed before may have been judged
	ending   bool // a beat has got through after a silence; one that lists all there is opens the pool
	stopping bool
	meter    meter
}

func newPool(slots, places int, silence time.Duration, decidedTo func(finished), changed func()) *pool {
	p := &pool{
		slots: slots, places: places, silence: silence, decidedTo: decidedTo, changed: changed,
		mine: map[workerdb.Key]*attempt{}, running: map[*attempt]struct{}{},
	}
	p.work.L = &p.mu
	return p
}

// room is how many attempts may be claimed now. It stays 0 until half of the places are free, so that a
// busy worker claims batches.
func (p *pool) room() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopping || p.silent() || len(p.held) > p.places/2 {
		return 0
	}
	return max(0, p.slots-len(p.running)) + p.places - len(p.held)
}

// silent says that other workers may by now have declared this one lost.
func (p *pool) silent() bool { return time.Since(p.lastBeat) >= p.silence }

// beaten opens the pool for another while: a beat that began then has got through. After a silence it
// takes another one, again: others may have judged an attempt that came in while the first was on its
// way, and that it could not list. What was claimed before the silence ended is taken no more.
func (p *pool) beaten(at time.Time) (again bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.silent() && !p.ending {
		p.ending = true
		p.era++
		return true
	}
	p.ending, p.lastBeat = false, at
	p.work.Broadcast()
	return false
}

// now is the era in which a claim begins.
func (p *pool) now() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.era
}

// has says whether an attempt is here.
func (p *pool) has(key workerdb.Key) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mine[key] != nil
}

// add takes attempts that were claimed in an era, all or none: after a silence their rows have to be
// read again.
func (p *pool) add(claimed []*attempt, era int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if era != p.era || p.silent() {
		return false
	}
	for _, a := range claimed {
		p.take(a)
	}
	return true
}

// take holds an attempt. One that must not start is decided at once. The caller holds the mutex.
func (p *pool) take(a *attempt) {
	a.claimedAt, a.place = time.Now(), -1
	p.mine[a.key()] = a
	switch {
	case a.run.Cancel:
		p.decide(a, endedOutcome(a, handlers.ErrCancelled))
		return
	case p.stopping:
		p.decide(a, interrupted(a, "its worker is stopping"))
		return
	}
	heap.Push(&p.held, a)
	p.work.Signal()
	p.changed()
}

// next waits for an attempt to run, and gives it with its context; none when the pool stops.
func (p *pool) next(ctx context.Context) (*attempt, context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.stopping && (len(p.held) == 0 || p.silent()) {
		p.work.Wait()
	}
	if p.stopping {
		return nil, nil
	}
	a := heap.Pop(&p.held).(*attempt)
	a.startedAt = time.Now()
	p.running[a] = struct{}{}
	p.meter.start(a.startedAt)
	ctx, a.end = context.WithCancelCause(ctx)
	p.changed()
	return a, ctx
}

// returned frees the slot of an attempt whose handler has come back.
func (p *pool) returned(a *attempt) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a.end(nil)
	delete(p.running, a)
	p.meter.finish(a.startedAt, time.Now())
	p.changed()
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
	}
	f.attempt, f.from = a, []record{a.from}
	p.decidedTo(f)
	p.changed()
}

// settled forgets attempts whose outcome is in the store: who asks for them now is answered there.
func (p *pool) settled(keys []workerdb.Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, key := range keys {
		delete(p.mine, key)
	}
}
