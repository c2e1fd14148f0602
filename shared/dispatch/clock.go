package dispatch

import (
	"time"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

const (
	// MaxStep bounds the attempts of one queue that one step sends out.
	MaxStep = 2000
	// ReleasePause is the pause between two steps that release thousands of jobs, so that other transactions can run in
	// between.
	ReleasePause = 5 * time.Millisecond
)

// IsClock marks the transaction as one of the function dispatch, which needs no waking.
func (l *Ledger) IsClock() { l.isClock = true }

// NextStep returns the time until the function dispatch has to run again, at most idle. sent is how many attempts it
// has sent out in this step.
func (l *Ledger) NextStep(idle time.Duration, sent int) time.Duration {
	switch {
	case sent >= MaxStep || l.cutShort:
		return 0
	case len(l.unreleased) > 0:
		return min(idle, ReleasePause)
	case !l.opensAt.IsZero():
		return min(idle, max(l.opensAt.Sub(l.At), time.Millisecond))
	}
	return idle
}

// noteOpening notes when the function dispatch has to run for the jobs that controls hold back. If that is sooner than
// it expects, noteOpening also notes that it must be woken.
func (l *Ledger) noteOpening() {
	var at time.Time
	switch {
	case l.cutShort:
		at = l.At
	case l.controls.limitsStarts:
		at = l.nextOpening()
	}
	before := l.opensAt
	if at.Equal(before) {
		return
	}
	l.opensAt, l.changed = at, true
	if at.IsZero() || l.isClock || !before.IsZero() && !at.Before(before) {
		return
	}
	l.wakeClock = true
}

// nextOpening returns when time alone lets out the first job that controls hold back; zero: it will not.
func (l *Ledger) nextOpening() (soonest time.Time) {
	consider := func(subjects ...Subject) {
		var last time.Time
		for _, s := range subjects {
			at, byTime := l.opensAfter(s)
			if !byTime {
				return
			}
			if at.After(last) {
				last = at
			}
		}
		if !last.IsZero() && (soonest.IsZero() || last.Before(soonest)) {
			soonest = last
		}
	}
	for queue := range l.floors {
		consider(queueSubject(queue))
	}
	for s := range l.buckets { // it is not known which fairness keys have waiting jobs
		if s.Kind == jobevent.ControlKey {
			consider(s)
		}
	}
	for queue, lanes := range l.lanes {
		for lane := range lanes {
			consider(append(subjectsOf(lane), queueSubject(queue))...)
		}
	}
	return soonest
}

// opensAfter returns when a subject lets an attempt start; zero: it does now. byTime is false if time alone does not
// suffice.
func (l *Ledger) opensAfter(s Subject) (at time.Time, byTime bool) {
	c, some := l.controls.of(s)
	if !some {
		return at, true
	}
	if c.paused || l.RunningOf(s) >= c.maxRunning {
		return at, false
	}
	if c.startsPerSecond > 0 {
		at = l.bucketOf(s, c).opensAt(c.startsPerSecond)
	}
	return at, true
}
