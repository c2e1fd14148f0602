package pool

import (
	"slices"
	"time"

	"github.com/jobweaver/jobweaver/functions/runjob/offsets"
	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// Figures has the numbers of a pool's attempts at one moment.
type Figures struct {
	Running, Overdue, Held int
	Stopping               bool
}

// Figures returns how many attempts run, how many wait for a slot, and how many are decided although their handlers
// still run.
func (p *Pool) Figures() Figures {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := Figures{Running: p.busy, Held: p.held.Len(), Stopping: p.stopping}
	for _, a := range p.running {
		if a != nil && a.decided {
			f.Overdue++
		}
	}
	return f
}

// Outstayed returns since when the handlers in all slots have ignored their timeouts; zero: not all do.
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

// Free returns how many more attempts would start at once.
func (p *Pool) Free() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.freeSlots()
}

func (p *Pool) freeSlots() int {
	if p.stopping || p.draining {
		return 0
	}
	if p.Defers { // what waits for another process keeps none of its slots busy
		return max(0, min(p.slots, p.slotsNow())-p.started)
	}
	return max(0, min(p.slots, p.slotsNow())-p.busy-p.held.Len())
}

// slotsNow returns the slots that a heartbeat reports.
func (p *Pool) slotsNow() int {
	if p.Demand == nil {
		return p.slots
	}
	return p.Demand()
}

// Listed is an attempt of the pool for a heartbeat.
type Listed struct {
	*Attempt
	StartedAt time.Time
	Cancelled bool
}

// List returns all attempts whose outcome is not in the store yet.
func (p *Pool) List() []Listed {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]Listed, 0, len(p.mine))
	for _, a := range p.mine {
		all = append(all, Listed{a, a.StartedAt, a.cancelled})
	}
	return all
}

// Heartbeat returns the pool's part of a heartbeat. Attempts that were claimed just now are left to the next heartbeat,
// which is then due soon: the scheduler writes a row for each listed attempt, and most attempts end before that.
func (p *Pool) Heartbeat(now time.Time) jobevent.Heartbeat {
	p.mu.Lock()
	defer p.mu.Unlock()
	slots := p.slotsNow()
	rate := p.meter.rate(now, min(p.slots, slots))
	p.ahead = min(maxAhead, int(rate*aheadFor.Seconds()))
	h := jobevent.Heartbeat{
		Slots: slots, Free: p.freeSlots(), Rate: rate, Stopping: p.stopping,
		Draining: p.draining,
		Drained:  p.draining && len(p.mine) == 0 && p.busy == 0, // a handler may run on after its timeout

		DrainVersion: p.drainVersion,
		Attempts:     make([]jobevent.ListedAttempt, 0, len(p.mine)),
	}
	for _, a := range p.mine {
		if now.Sub(a.claimedAt) < justNow {
			p.changed(0)
			continue
		}
		attempt := jobevent.ListedAttempt{
			JobID: a.Run.JobID, Attempt: a.Run.Attempt, RanBy: a.ranBy(), Progress: a.ReportedProgress(),
		}
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

// left is an attempt that has waited for a callback since an instant.
type left struct {
	at      time.Time
	attempt jobevent.ListedAttempt
}

// Leave makes the next heartbeats repeat the progress of an attempt that was settled as waiting. The handler may have
// reported the progress right before it returned, after the last heartbeat that listed the attempt.
func (p *Pool) Leave(a *Attempt, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	progress := a.ReportedProgress()
	if progress == nil || len(p.left) >= maxLeft {
		return
	}
	attempt := jobevent.ListedAttempt{JobID: a.Run.JobID, Attempt: a.Run.Attempt, Progress: progress}
	p.left = append(p.left, left{now, attempt})
	p.changed(0)
}

// HeldTooLong returns the number of attempts that have waited for a slot for longer than atMost, by queue.
func (p *Pool) HeldTooLong(atMost time.Duration) map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	queues := map[string]int{}
	for _, a := range p.overdueHeld(atMost) {
		queues[a.Queue]++
	}
	return queues
}

// Pass returns the records of attempts that were claimed long ago and hold back the commit of more than limit other
// records. These records may be committed although the attempts still run. The database keeps the attempts from
// starting again, and if this worker is killed before it has published their outcomes, the watchdog asks about them
// and a worker answers from the database. Other records stay uncommitted, even if only some of their attempts run: the
// lag shows a scaler how much work there is, and a redelivered record only makes a worker publish the outcomes of its
// done attempts again.
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
