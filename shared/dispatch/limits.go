package dispatch

import (
	"maps"
	"slices"
	"time"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// ControlsRevision returns the number of the controls that are in force; 0: there never was a control.
func (l *Ledger) ControlsRevision() int64 { return l.controlsRevision }

// UseControls sets the controls that hold from now on.
func (l *Ledger) UseControls(set *Controls) {
	l.controls = set
	if set.limitsStarts {
		l.refillFromNow()
	}
}

// ChangeControls makes the set of the next revision of the kept controls. It does not take effect before UseControls.
func (l *Ledger) ChangeControls(kept []jobevent.Control) *Controls {
	l.controlsRevision++
	l.changed = true
	return NewControls(l.controlsRevision, kept)
}

// SetRunning sets how many attempts are out for each subject under a control. Under earlier controls the ledger did not
// have to count them.
func (l *Ledger) SetRunning(running map[Subject]int) { l.running = running }

// refillFromNow makes buckets of the future fill from now on. The database's clock was set back, and an empty bucket
// would stay empty until the clock reached its instant again.
func (l *Ledger) refillFromNow() {
	for s, b := range l.buckets {
		if b.At.After(l.At) {
			b.At = l.At
			l.buckets[s], l.changed = b, true
		}
	}
}

// roomOf returns how many more attempts of a subject may start now.
func (l *Ledger) roomOf(s Subject) int {
	c, some := l.controls.of(s)
	switch {
	case !some:
		return unlimited
	case c.paused:
		return 0
	}
	room := unlimited
	if c.maxRunning < unlimited {
		room = max(0, c.maxRunning-l.RunningOf(s))
	}
	if c.startsPerSecond > 0 {
		room = int(min(float64(room), l.bucketOf(s, c).Tokens))
	}
	return room
}

// RoomOfQueue returns how many more attempts of a queue its controls allow now.
func (l *Ledger) RoomOfQueue(queue string) int { return l.roomOf(queueSubject(queue)) }

// roomUnder returns how many jobs of a queue's lane with these subjects may go out; zero: the lane is closed.
func (l *Ledger) roomUnder(queue string, subjects []Subject) int {
	if !l.isServed(queue, subjects) {
		return 0
	}
	room := unlimited
	for _, s := range subjects {
		room = min(room, l.roomOf(s))
	}
	return room
}

// RunningOf returns how many attempts of a subject under a control are out.
func (l *Ledger) RunningOf(s Subject) int {
	if s.Kind != jobevent.ControlQueue {
		return l.running[s]
	}
	return l.out.ofQueue(s.Name)
}

// bucketOf returns the bucket of a subject; a full one if none is kept.
func (l *Ledger) bucketOf(s Subject, c control) bucket {
	if b, some := l.buckets[s]; some {
		return b.now(l.At, c.startsPerSecond)
	}
	return bucket{Tokens: depthOf(c.startsPerSecond), At: l.At}
}

// allows reports whether the controls of a class leave room for one more attempt.
func (l *Ledger) allows(class Class) bool {
	return !slices.ContainsFunc(l.controls.holding(class), func(s Subject) bool { return l.roomOf(s) == 0 })
}

// noteStarts notes for the controls of their class that n attempts start. If n is negative, so many do not start after
// all.
func (l *Ledger) noteStarts(class Class, n int) {
	if l.IsAsked(class.Queue) {
		l.noteAsked(class.kind(), n)
	}
	for _, s := range l.controls.holding(class) {
		if l.running == nil {
			l.running = map[Subject]int{}
		}
		l.running[s] += n
		l.spend(s, n)
	}
}

// NoteStarts notes for the controls of a queue that n attempts start.
func (l *Ledger) NoteStarts(queue string, n int) { l.spend(queueSubject(queue), n) }

// spend takes n tokens from the bucket of a subject, if its starts are limited.
func (l *Ledger) spend(s Subject, n int) {
	c, _ := l.controls.of(s)
	if c.startsPerSecond == 0 || n == 0 {
		return
	}
	b := l.bucketOf(s, c)
	b.Tokens -= float64(n)
	if l.buckets == nil {
		l.buckets = map[Subject]bucket{}
	}
	l.buckets[s] = b
	l.changed = true
}

// tidyControls removes counts that no control needs, and buckets that are full again.
func (l *Ledger) tidyControls() {
	maps.DeleteFunc(l.running, func(s Subject, n int) bool {
		_, some := l.controls.of(s)
		return !some || n == 0
	})
	maps.DeleteFunc(l.buckets, func(s Subject, b bucket) bool {
		c, _ := l.controls.of(s)
		return c.startsPerSecond == 0 || b.now(l.At, c.startsPerSecond).Tokens >= depthOf(c.startsPerSecond)
	})
	maps.DeleteFunc(l.lanes, func(_ string, lanes map[string]time.Time) bool { return len(lanes) == 0 })
}
