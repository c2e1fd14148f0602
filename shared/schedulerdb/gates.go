package schedulerdb

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/internal/gen"
)

// goBy takes the set of controls that holds from now on.
func (l *ledger) goBy(ctx context.Context, q *gen.Queries, set *controlSet) error {
	l.controls, l.now = set, l.at
	if !set.byTime {
		return nil
	}
	at, err := q.Clock(ctx)
	if err != nil {
		return fmt.Errorf("read the clock: %w", err)
	}
	l.now = at
	l.fillFrom(at)
	return nil
}

// clockBack is how much earlier than a bucket the clock may be before it must have been set back: who waited for the
// lock may read it a little late.
const clockBack = time.Second

// fillFrom has buckets of the future be filled from now on: the database's clock was set back, and until it came to
// that time again an empty bucket would stay empty.
func (l *ledger) fillFrom(now time.Time) {
	for s, b := range l.Buckets {
		if b.At.Sub(now) > clockBack {
			b.At = now
			l.Buckets[s], l.changed = b, true
		}
	}
}

// roomOf is how many more attempts of a subject may start now.
func (l *ledger) roomOf(s subject) int {
	r, some := l.controls.rules[s]
	switch {
	case !some:
		return unlimited
	case r.paused:
		return 0
	}
	room := unlimited
	if r.maxRunning < unlimited {
		room = max(0, r.maxRunning-l.runningOf(s))
	}
	if r.perSecond > 0 {
		room = int(min(float64(room), l.bucketOf(s, r).Tokens))
	}
	return room
}

func (l *ledger) roomOfQueue(queue string) int {
	return l.roomOf(subject{jobevent.ControlQueue, queue})
}

func (l *ledger) runningOf(s subject) int {
	if s.kind != jobevent.ControlQueue {
		return l.running[s]
	}
	running := 0
	for _, counts := range l.out[s.name] {
		for _, n := range counts {
			running += n
		}
	}
	return running
}

// bucketOf is full for one of which nothing is kept.
func (l *ledger) bucketOf(s subject, r rule) bucket {
	if b, some := l.Buckets[s]; some {
		return b.now(l.now, r.perSecond)
	}
	return bucket{Tokens: depthOf(r.perSecond), At: l.now}
}

// lets says whether a job's type and owner have room for it.
func (l *ledger) lets(jobType, owner string) bool {
	for _, s := range l.controls.touching(jobType, owner) {
		if l.roomOf(s) == 0 {
			return false
		}
	}
	return true
}

// starts notes that an attempt goes out, but for what the ledger keeps by queue.
func (l *ledger) starts(jobType, owner string) {
	for _, s := range l.controls.touching(jobType, owner) {
		if l.running == nil {
			l.running = map[subject]int{}
		}
		l.running[s]++
		l.spend(s, 1)
	}
}

// spend notes that attempts of a subject start now.
func (l *ledger) spend(s subject, n int) {
	r := l.controls.rules[s]
	if r.perSecond == 0 || n == 0 {
		return
	}
	b := l.bucketOf(s, r)
	b.Tokens -= float64(n)
	if l.Buckets == nil {
		l.Buckets = map[subject]bucket{}
	}
	l.Buckets[s] = b
	l.changed = true
}

// roomUnder is how many jobs of a lane that stands under those controls may go out; zero: it is closed.
func (l *ledger) roomUnder(subjects []subject) int {
	room := unlimited
	for _, s := range subjects {
		room = min(room, l.roomOf(s))
	}
	return room
}

// waitsOpen says whether a job waits in a queue that no control holds back.
func (l *ledger) waitsOpen(queue string) bool {
	if _, some := l.floors[queue]; some {
		return true
	}
	for lane := range l.lanes[queue] {
		if l.roomUnder(subjectsOf(lane)) > 0 {
			return true
		}
	}
	return false
}

// waiting are the queues of which something may go out, should a worker have room.
func (l *ledger) waiting() []string {
	queues := slices.Collect(maps.Keys(l.floors))
	for queue := range l.lanes {
		if _, some := l.floors[queue]; !some && l.waitsOpen(queue) {
			queues = append(queues, queue)
		}
	}
	if len(l.controls.rules) == 0 {
		return queues
	}
	return slices.DeleteFunc(queues, func(queue string) bool { return l.roomOfQueue(queue) == 0 })
}

// opensAfter is when a subject lets something start; zero: it does now. Not so when time alone will not do.
func (l *ledger) opensAfter(s subject) (at time.Time, byTime bool) {
	r, some := l.controls.rules[s]
	if !some {
		return at, true
	}
	if r.paused || l.runningOf(s) >= r.maxRunning {
		return at, false
	}
	if r.perSecond > 0 {
		at = l.bucketOf(s, r).opensAt(r.perSecond)
	}
	return at, true
}

// nextOpening is when time lets out the first of what controls hold back; zero: it will not.
func (l *ledger) nextOpening() (soonest time.Time) {
	consider := func(subjects ...subject) {
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
		consider(subject{jobevent.ControlQueue, queue})
	}
	for queue, lanes := range l.lanes {
		for lane := range lanes {
			consider(append(subjectsOf(lane), subject{jobevent.ControlQueue, queue})...)
		}
	}
	return soonest
}

// noteOpening enters when the clock has to come for what controls hold back, and wakes it when that is
// sooner than it expects.
func (l *ledger) noteOpening(ctx context.Context, q *gen.Queries) error {
	var at time.Time
	switch {
	case l.cutShort:
		at = l.now
	case l.controls.byTime:
		at = l.nextOpening()
	}
	was := l.OpensAt
	if at.Equal(was) {
		return nil
	}
	l.OpensAt, l.changed = at, true
	if at.IsZero() || l.isClock || !was.IsZero() && !at.Before(was) {
		return nil
	}
	return wakeClock(ctx, q)
}

// tidyControls forgets what no control asks about, and buckets that are full again.
func (l *ledger) tidyControls() {
	maps.DeleteFunc(l.running, func(s subject, n int) bool {
		_, some := l.controls.rules[s]
		return !some || n == 0
	})
	maps.DeleteFunc(l.Buckets, func(s subject, b bucket) bool {
		r := l.controls.rules[s]
		return r.perSecond == 0 || b.now(l.now, r.perSecond).Tokens >= depthOf(r.perSecond)
	})
	maps.DeleteFunc(l.lanes, func(_ string, lanes map[string]time.Time) bool { return len(lanes) == 0 })
	l.Running, l.Lanes = l.running, l.lanes
}
