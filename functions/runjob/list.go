package runjob

import (
	"slices"
	"time"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// figures of the pool at one moment.
type figures struct {
	running, overdue, held int
}

func (p *pool) figures() figures {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := figures{running: p.busy, held: len(p.held)}
	for _, a := range p.running {
		if a != nil && a.decided {
			f.overdue++
		}
	}
	return f
}

// outstayed is since when every slot has a handler that ignores its timeout; zero: not every one has.
func (p *pool) outstayed(now time.Time) (since time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range p.running {
		if a == nil || now.Before(a.dueAt) {
			return time.Time{}
		}
		if a.dueAt.After(since) {
			since = a.dueAt
		}
	}
	return since
}

// free is how many more attempts would start at once.
func (p *pool) free() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.freeSlots()
}

func (p *pool) freeSlots() int {
	if p.stopping {
		return 0
	}
	return max(0, p.slotsNow()-p.busy-len(p.held))
}

// slotsNow is how many attempts could run at once.
func (p *pool) slotsNow() int {
	if p.demand == nil {
		return p.slots
	}
	return min(p.slots, p.demand())
}

// listed is an attempt as a beat sees it.
type listed struct {
	*attempt
	startedAt time.Time
}

// list gives all attempts whose outcome is not yet in the store.
func (p *pool) list() []listed {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]listed, 0, len(p.mine))
	for _, a := range p.mine {
		all = append(all, listed{a, a.startedAt})
	}
	return all
}

// heartbeat is the pool's part of a beat. What came just now is left to the next beat, which is then due
// soon: the scheduler writes a row for each attempt it hears of, and most would be over by then.
func (p *pool) heartbeat(now time.Time) jobevent.Heartbeat {
	p.mu.Lock()
	defer p.mu.Unlock()
	slots := p.slotsNow()
	rate := p.meter.rate(now, slots)
	p.ahead = min(maxAhead, int(rate*aheadFor.Seconds()))
	h := jobevent.Heartbeat{
		Slots: slots, Free: p.freeSlots(), Rate: rate, Stopping: p.stopping,
		Attempts: make([]jobevent.HeldAttempt, 0, len(p.mine)),
	}
	for _, a := range p.mine {
		if now.Sub(a.claimedAt) < justNow {
			p.changed(0)
			continue
		}
		attempt := jobevent.HeldAttempt{JobID: a.run.JobID, Attempt: a.run.Attempt, Progress: a.tell()}
		if !a.startedAt.IsZero() {
			started := a.startedAt.UTC()
			attempt.StartedAt = &started
		}
		h.Attempts = append(h.Attempts, attempt)
	}
	p.left = slices.DeleteFunc(p.left, func(l left) bool { return now.Sub(l.at) > leftFor })
	for _, l := range p.left {
		h.Left = append(h.Left, l.attempt)
	}
	return h
}

// left is an attempt that waits for a callback since an instant.
type left struct {
	at      time.Time
	attempt jobevent.HeldAttempt
}

// leave has the next beats repeat the progress of an attempt that was settled as waiting. Its handler may have reported
// it right before it returned, after the last beat that listed the attempt.
func (p *pool) leave(a *attempt, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	progress := a.tell()
	if progress == nil || len(p.left) >= maxLeft {
		return
	}
	attempt := jobevent.HeldAttempt{JobID: a.run.JobID, Attempt: a.run.Attempt, Progress: progress}
	p.left = append(p.left, left{now, attempt})
	p.changed(0)
}

// heldTooLong counts, by queue, the attempts that have waited for a slot for longer than atMost.
func (p *pool) heldTooLong(atMost time.Duration) map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	queues := map[string]int{}
	for _, a := range p.overdueHeld(atMost) {
		queues[a.queue]++
	}
	return queues
}
