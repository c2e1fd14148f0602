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

// Cancel ends an attempt that is here, and reports whether it is. One that has not started is settled at
// once, a running one when its handler returns, or after patience.
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

// timeOut settles what has run for longer than it may, and ends its context. It comes by one timer for
// all that runs, which is set when something starts that is due before the others.
func (p *Pool) timeOut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.nextDue = time.Time{}
	for _, a := range p.running {
		switch {
		case a == nil || a.decided:
		case a.dueAt.After(now):
			p.watch(a.dueAt, now)
		default:
			p.decide(a, endedOutcome(a, handlers.ErrTimeout))
			a.end(handlers.ErrTimeout)
		}
	}
}

// watch has timeOut called then, or before. The caller holds the mutex.
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
		return // then it is our own outcome that is in the store
	}
	if a.end != nil {
		a.end(handlers.ErrLost)
	}
	p.finish(a, Finished{Outcome: outcome, Settled: true})
}

// HandBack gives up attempts of a queue that have waited too long, up to limit of them, the worst rank first.
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

// GiveUp settles attempts that have waited for a slot until after their expiresAt.
func (p *Pool) GiveUp() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	var late []*Attempt
	for _, a := range p.held {
		if a.Expired(now) {
			late = append(late, a)
		}
	}
	for _, a := range late {
		p.decide(a, expiredOutcome(a))
	}
}

// overdueHeld are the held attempts, the worst rank first, that were claimed longer ago than atMost.
func (p *Pool) overdueHeld(atMost time.Duration) []*Attempt {
	var late held
	for _, a := range p.held {
		if time.Since(a.claimedAt) >= atMost {
			late = append(late, a)
		}
	}
	slices.SortFunc(late, func(a, b *Attempt) int { return b.compare(a) })
	return late
}

// Stop hands back what waits for a slot and starts nothing more.
func (p *Pool) Stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopping = true
	for len(p.held) > 0 {
		p.decide(p.held[0], interrupted(p.held[0], "its worker is stopping"))
	}
	p.work.Broadcast()
}

// EndRunning ends the contexts of what runs.
func (p *Pool) EndRunning() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range p.running {
		if a != nil {
			a.end(handlers.ErrStopping)
		}
	}
}

// DecideRunning settles what still runs as interrupted, and returns how many handlers that leaves behind.
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
