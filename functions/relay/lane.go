package relay

import (
	"context"
	"sync"
	"time"
)

// lane has the rows of an outbox with an orderingKey, or those without.
type lane struct {
	ordered bool
	passes  int           // at once
	woken   chan struct{} // has room for one value, because the pass that takes it looks at all rows
	active  chan struct{} // has room for one value; filled when a pass has found many rows

	mu        sync.Mutex
	behind    int64         // rows before this position were taken, or are locked by another relay
	sweepCost time.Duration // how long the last look that began at the first row took
	sweepAt   time.Time     // when the next such look may be made
}

func newLane(ordered bool) *lane {
	l := &lane{ordered: ordered, passes: plainPasses, woken: make(chan struct{}, 1), active: make(chan struct{}, 1)}
	if ordered {
		l.passes = 1
	}
	return l
}

func (l *lane) wake() { put(l.woken) }

func put(signal chan struct{}) {
	select {
	case signal <- struct{}{}:
	default:
	}
}

// tick wakes the lane at the start, and then after the pauses that soon and poll define. An idle lane is woken only if
// look finds a row.
func (l *lane) tick(ctx context.Context, look func(context.Context, *lane) bool) {
	l.wake()
	for pause := soon; ; {
		select {
		case <-ctx.Done():
			return
		case <-l.active:
			pause = soon
		case <-time.After(pause):
			if pause < poll || look(ctx, l) {
				l.wake()
			}
			pause = min(2*pause, poll)
		}
	}
}

// from returns the position at which a pass begins. In the ordered lane it is always the first: a transaction may
// insert a row at an earlier position but commit after a later row of another key was taken, and a second transaction
// may then add a row of the same key. A pass that began behind the taken rows would submit the key's second job before
// its first.
func (l *lane) from(now time.Time) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ordered || l.sweepCost < quick || !now.Before(l.sweepAt) {
		l.sweepAt = now.Add(sweepShare * l.sweepCost) // here, so that only one pass at a time makes the slow look
		return 0
	}
	return l.behind
}

// looked records that a look found rows up to a position.
func (l *lane) looked(from, last int64, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.behind = max(last+1, from)
	l.swept(from, took)
}

// busy is called by a pass that has found many rows.
func (l *lane) busy() {
	l.wake()
	put(l.active)
}

// foundNothing records that a look found no row. The rows before its beginning are visited later.
func (l *lane) foundNothing(from int64, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.swept(from, took)
	if from > 0 {
		time.AfterFunc(time.Until(l.sweepAt), l.wake)
	}
}

func (l *lane) swept(from int64, took time.Duration) {
	if from == 0 {
		l.sweepCost, l.sweepAt = took, time.Now().Add(sweepShare*took)
	}
}

// skip makes the next passes begin behind a row for a while, except in the ordered lane.
func (l *lane) skip(position int64) {
	if l.ordered {
		l.again()
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.behind, l.sweepCost, l.sweepAt = position+1, quick, time.Now().Add(poll)
}

// again makes the next pass begin at the first row, because rows were given back.
func (l *lane) again() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.behind, l.sweepAt = 0, time.Time{}
}
