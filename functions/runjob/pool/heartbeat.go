package pool

import (
	"slices"
	"time"

	"github.com/jobweaver/jobweaver/functions/runjob/offsets"
	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// Figures count what a pool has at one moment.
type Figures struct {
	Running, Overdue, Held int
	Stopping               bool
}

// Figures returns how many attempts run, wait, and are settled while their handlers go on.
func (p *Pool) Figures() Figures {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := Figures{Running: p.busy, Held: len(p.held), Stopping: p.stopping}
	for _, a := range p.running {
		if a != nil && a.decided {
			f.Overdue++
		}
	}
	return f
}

// Outstayed is since when every slot has a handler that ignores its timeout; zero: not every one has.
func (p *Pool) Outstayed(now time.Time) (since time.Time) {
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

// Free is how many more attempts would start at once.
func (p *Pool) Free() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.freeSlots()
}

func (p *Pool) freeSlots() int {
	if p.stopping {
		return 0
	}
	return max(0, p.slotsNow()-p.busy-len(p.held))
}

// slotsNow is how many attempts could run at once.
func (p *Pool) slotsNow() int {
	if p.Demand == nil {
		return p.slots
	}
	return min(p.slots, p.Demand())
}

// Listed is an attempt of the pool for a heartbeat.
type Listed struct {
	*Attempt
	StartedAt time.Time
	Cancelled bool
}

// List gives all attempts whose outcome is not yet in the store.
func (p *Pool) List() []Listed {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]Listed, 0, len(p.mine))
	for _, a := range p.mine {
		all = append(all, Listed{a, a.StartedAt, a.cancelled})
	}
	return all
}

// Heartbeat is the pool's part of a beat. What came just now is left to the next beat, which is then due
// soon: the scheduler writes a row for each attempt that is listed, and most would be over by then.
func (p *Pool) Heartbeat(now time.Time) jobevent.Heartbeat {
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
		attempt := jobevent.HeldAttempt{JobID: a.Run.JobID, Attempt: a.Run.Attempt, Progress: a.ReportedProgress()}
		if !a.StartedAt.IsZero() {
			started := a.StartedAt.UTC()
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

// Leave has the next beats repeat the progress of an attempt that was settled as waiting. Its handler may have
// reported it right before it returned, after the last beat that listed the attempt.
func (p *Pool) Leave(a *Attempt, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	progress := a.ReportedProgress()
	if progress == nil || len(p.left) >= maxLeft {
		return
	}
	attempt := jobevent.HeldAttempt{JobID: a.Run.JobID, Attempt: a.Run.Attempt, Progress: progress}
	p.left = append(p.left, left{now, attempt})
	p.changed(0)
}

// HeldTooLong counts, by queue, the attempts that have waited for a slot for longer than atMost.
func (p *Pool) HeldTooLong(atMost time.Duration) map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	queues := map[string]int{}
	for _, a := range p.overdueHeld(atMost) {
		queues[a.Queue]++
	}
	return queues
}

// Pass gives the records of attempts that hold back the commit of more than limit others, if they were claimed that
// long ago. Their rows keep them from starting again, so the records need not come again: should this worker be killed
// before it has published what became of them, the watchdog asks, and the rows answer. The others stay, also where
// they share a record: what is not committed shows a scaler how much its workers have to do, and should all of a
// record come again, the rows of its done attempts only have their outcomes published once more.
func (p *Pool) Pass(age time.Duration, limit int) []offsets.Record {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	var records []offsets.Record
	for _, a := range p.mine {
		if a.passed || a.From.Partition == nil || now.Sub(a.claimedAt) < age ||
			a.From.Partition.Tracker.Gap() <= limit {
			continue
		}
		a.passed = true
		records = append(records, a.From)
	}
	return records
}
