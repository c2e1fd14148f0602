package pool

import (
	"slices"
	"time"

	"github.com/jobweaver/jobweaver/functions/runjob/handlers"
	"github.com/jobweaver/jobweaver/shared/workerdb"
)

func (p *Pool) decideNow(a *Attempt, outcome workerdb.Outcome) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.decide(a, outcome)
}

// Cancel cancels an attempt, and reports whether the pool has it. An attempt that has not started is decided at once; a
// running one when its handler returns, or after patience.
func (p *Pool) Cancel(key workerdb.Key, patience time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.mine[key]
	if a == nil {
		return false
	}
	if a.decided || a.cancelled {
		return true
	}
	a.cancelled = true
	if a.end == nil {
		p.decide(a, endedOutcome(a, handlers.ErrCancelled))
		return true
	}
	a.end(handlers.ErrCancelled)
	time.AfterFunc(patience, func() { p.decideNow(a, endedOutcome(a, handlers.ErrCancelled)) })
	return true
}

// timeOut decides attempts that have run past their timeout, and ends their contexts. One timer calls it for all
// running attempts; a start with an earlier timeout sets the timer anew.
func (p *Pool) timeOut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.nextDue = time.Time{}
	for _, a := range p.running {
		switch {
		case a == nil || a.decided:
		case a.StartedAt.IsZero():
			if a.Expired(now) {
				p.expire(a)
			} else if !a.ExpiresAt.IsZero() {
				p.watch(a.ExpiresAt, now)
			}
		case a.dueAt.After(now):
			p.watch(a.dueAt, now)
		default:
			p.decide(a, endedOutcome(a, handlers.ErrTimeout))
			a.end(handlers.ErrTimeout)
		}
	}
}

// watch makes sure that timeOut is called at an instant or earlier. The caller holds the mutex.
func (p *Pool) watch(due, now time.Time) {
	if !p.nextDue.IsZero() && !due.Before(p.nextDue) {
		return
	}
	p.nextDue = due
	wait := max(due.Sub(now), time.Millisecond)
	if p.timer == nil {
		p.timer = time.AfterFunc(wait, p.timeOut)
	} else {
		p.timer.Reset(wait)
	}
}

// Taken ends an attempt for which another worker has written an outcome.
func (p *Pool) Taken(outcome workerdb.Outcome) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.mine[outcome.Key]
	if a == nil || a.decided {
		return // the outcome in the store is our own
	}
	if a.end != nil {
		a.end(handlers.ErrLost)
	}
	p.finish(a, Finished{Outcome: outcome, Settled: true})
}

// HandBack gives up to limit attempts of a queue back that have waited too long for a slot, the worst rank first.
func (p *Pool) HandBack(queue string, limit int, heldAtMost time.Duration) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, a := range p.overdueHeld(heldAtMost) {
		if a.Queue == queue && n < limit {
			p.decide(a, interrupted(a, "another worker has a free slot"))
			n++
		}
	}
	return n
}

// GiveUp decides attempts that still waited for a slot when they expired.
func (p *Pool) GiveUp() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	var late []*Attempt
	for a := range p.held.All() {
		if a.Expired(now) {
			late = append(late, a)
		}
	}
	for _, a := range late {
		p.decide(a, expiredOutcome(a))
	}
}

// overdueHeld returns the held attempts that were claimed longer ago than atMost, the worst rank first.
func (p *Pool) overdueHeld(atMost time.Duration) []*Attempt {
	var late []*Attempt
	for a := range p.held.All() {
		if time.Since(a.claimedAt) >= atMost {
			late = append(late, a)
		}
	}
	slices.SortFunc(late, func(a, b *Attempt) int { return b.compare(a) })
	return late
}

// Stop gives back the attempts that wait for a slot. No attempt starts afterwards.
func (p *Pool) Stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopping = true
	for p.held.Len() > 0 {
		p.decide(p.held.First(), interrupted(p.held.First(), "its worker is stopping"))
	}
	p.work.Broadcast()
}

const drainingReason = "its worker is draining"

// Drain gives back the attempts that wait for a slot, and takes none until it is called with false. Heartbeats name the
// version of the order. It reports whether they change.
func (p *Pool) Drain(draining bool, version int64) (changed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.draining == draining && p.drainVersion == version {
		return false
	}
	p.draining, p.drainVersion = draining, version
	for draining && p.held.Len() > 0 {
		p.decide(p.held.First(), interrupted(p.held.First(), drainingReason))
	}
	p.changed(p.roomNow())
	return true
}

// EndRunning ends the contexts of running attempts.
func (p *Pool) EndRunning() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range p.running {
		if a != nil {
			a.end(handlers.ErrStopping)
		}
	}
}

// DecideRunning decides attempts that still run as interrupted, and returns how many handlers it leaves running.
func (p *Pool) DecideRunning() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range p.running {
		if a != nil {
			p.decide(a, interrupted(a, "its worker stopped"))
		}
	}
	return p.busy
}
