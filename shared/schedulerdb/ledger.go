package schedulerdb

import (
	"context"
	"fmt"
	"time"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/internal/gen"
)

// ledger is the tally of all jobs, under the lock of dispatching. Whoever changes what it is about
// takes that lock, after he has changed the rows, enters his news and holds the lock over the commit:
// so it says of every committed row what is, and of no other.
//
// One can be missed: a waiting job that is skipped because somebody has it locked, and who then
// rolls back. Whoever commits enters again what he has locked and left waiting; for the one who does not,
// the watchdog counts.
type ledger struct {
	tally
	more
	n        int64
	at       time.Time // the transaction's
	changed  bool
	controls *controlSet
	now      time.Time // by which starts a second are counted
	hadEnded bool      // as it was kept, and so whoever has the clock knows
	isClock  bool      // whoever has it wakes by himself
	cutShort bool      // more could be looked at than one step does
}

func (s *Store) lockDispatch(ctx context.Context, q *gen.Queries) (*ledger, error) {
	row, err := q.DispatchLock(ctx)
	if err != nil {
		return nil, fmt.Errorf("lock dispatch: %w", err)
	}
	t, err := readTally(row.InFlight, row.Floors, row.DueFloor)
	if err != nil {
		return nil, err
	}
	m, err := readMore(row.More)
	if err != nil {
		return nil, err
	}
	l := &ledger{tally: t, more: m, n: row.N, at: row.At, hadEnded: len(m.Ended) > 0}
	l.running, l.lanes = m.Running, m.Lanes
	set, err := s.controlsOf(ctx, q, m.Controls)
	if err != nil {
		return nil, err
	}
	return l, l.goBy(ctx, q, set)
}

// enter takes in what the transaction has done, and wakes the clock when something is due sooner than
// it expects.
func (l *ledger) enter(ctx context.Context, q *gen.Queries, news tally) error {
	if news.empty() {
		return nil
	}
	l.changed = true
	if news.countedFor != 0 && news.countedFor != l.Controls {
		news.running = nil
	}
	sooner := !news.due.IsZero() && (l.due.IsZero() || news.due.Before(l.due))
	l.add(news)
	if len(news.ended) > 0 && l.Dependents == 0 {
		l.Dependents = news.dependents
	}
	if !sooner {
		return nil
	}
	return wakeClock(ctx, q)
}

func wakeClock(ctx context.Context, q *gen.Queries) error {
	if err := q.NotifyDue(ctx); err != nil {
		return fmt.Errorf("wake the clock: %w", err)
	}
	return nil
}

// took notes that the best that was asked for of a queue has gone out.
func (l *ledger) took(queue string, rows []gen.JobsDispatchRow, asked int) {
	l.changed = true
	if len(rows) < asked {
		delete(l.floors, queue)
	}
	l.wentOut(queue, rows)
	for _, row := range rows {
		if len(rows) == asked && row.Rank.After(l.floors[queue]) {
			l.floors[queue] = row.Rank
		}
	}
}

// wentOut notes what of a queue goes out.
func (l *ledger) wentOut(queue string, rows []gen.JobsDispatchRow) {
	for _, row := range rows {
		l.out.add(queue, "", partitionOf(row.Partition), 1)
	}
	l.spend(subject{jobevent.ControlQueue, queue}, len(rows))
}

// nextIsDue sets from when on something is due; zero: never.
func (l *ledger) nextIsDue(at time.Time) {
	if !at.Equal(l.due) {
		l.due, l.changed = at, true
	}
}

func (l *ledger) save(ctx context.Context, q *gen.Queries) error {
	if err := l.noteOpening(ctx, q); err != nil {
		return err
	}
	if !l.changed {
		return nil
	}
	l.out.tidy()
	l.tidyControls()
	if len(l.Ended) > 0 && !l.hadEnded { // the clock goes on where this step stops
		if err := wakeClock(ctx, q); err != nil {
			return err
		}
	}
	p := gen.DispatchSaveParams{N: l.n, InFlight: mustJSON(l.out), Floors: mustJSON(l.floors), More: l.more.json()}
	if !l.due.IsZero() {
		p.DueFloor = &l.due
	}
	if err := q.DispatchSave(ctx, p); err != nil {
		return fmt.Errorf("save dispatch state: %w", err)
	}
	return nil
}
