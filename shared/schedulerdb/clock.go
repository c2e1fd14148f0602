package schedulerdb

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/internal/gen"
)

// releasePause is between the steps in which thousands are released: others come between.
const releasePause = 5 * time.Millisecond

// dueMost bounds one pass of the clock.
const dueMost = 1000

// lockedPause is how long the clock leaves a due row alone that somebody has locked.
const lockedPause = 100 * time.Millisecond

// Due makes ready what has become due, asks about callbacks that have not come, gives up jobs that have not started
// in time, and sends out what there is room for. next is how long nothing more is due, at most idle; zero
// when there may be more to send out than one pass does.
func (s *Store) Due(ctx context.Context, idle time.Duration) (say Say, next time.Duration, err error) {
	err = s.txSay(ctx, &say, func(q *gen.Queries) error {
		say, next = Say{}, idle
		news := newTally()
		if say.Jobs, err = s.takeOverdue(ctx, q, &news); err != nil {
			return err
		}
		due, err := q.JobsDue(ctx, gen.JobsDueParams{MaxJobs: dueMost, SilentAfter: silentAfter})
		if err != nil {
			return fmt.Errorf("take due jobs: %w", err)
		}
		ids := make([]uuid.UUID, len(due))
		for i, job := range due {
			ids[i] = job.JobID
			if job.BlockedBy == nil {
				news.waits(job.Queue, orEmpty(job.Lane), job.Rank)
			} else if key, some := orderKeyOf(job.OrderingKey, job.OwnerID); some {
				news.turns(key) // whoever gave turns has left it alone
			}
			if job.ExpiresAt != nil && job.StartedAt == nil {
				news.falls(*job.ExpiresAt)
			}
		}
		l, err := s.lockDispatch(ctx, q)
		if err != nil {
			return err
		}
		l.isClock = true
		if err := l.enter(ctx, q, news); err != nil {
			return err
		}
		if next, err = nextDue(ctx, q, l, idle); err != nil {
			return err
		}
		if next == 0 && len(due) < dueMost {
			next = lockedPause
		}
		if err := s.dispatchLocked(ctx, q, "dispatch", l, &say); err != nil {
			return err
		}
		say.changed = ids
		switch {
		case len(say.out) >= dispatchMost || l.cutShort:
			next = 0
		case len(l.Ended) > 0:
			next = min(next, releasePause)
		case !l.OpensAt.IsZero():
			next = min(next, max(l.OpensAt.Sub(l.now), time.Millisecond))
		}
		return nil
	})
	return say, next, err
}

// takeOverdue gives up jobs that have not started in time, and has those told again that wait for a callback past
// its deadline: the API knows whether it has accepted one, and says what becomes of the attempt.
func (s *Store) takeOverdue(ctx context.Context, q *gen.Queries, news *tally) ([]Snapshot, error) {
	ids, err := q.JobsOverdue(ctx, dueMost)
	if err != nil {
		return nil, fmt.Errorf("lock overdue callbacks and jobs: %w", err)
	}
	jobs, err := lockJobs(ctx, q, ids)
	if err != nil {
		return nil, err
	}
	for _, job := range jobs {
		job.expire("dispatch")
	}
	saved, err := saveJobs(ctx, q, jobs, news)
	if err != nil || len(jobs) == 0 {
		return saved, err
	}
	asked, err := q.JobsAskAboutCallbacks(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("ask about callbacks: %w", err)
	}
	ids = ids[:0]
	for _, job := range asked {
		ids = append(ids, job.JobID)
		news.falls(job.DueAt)
	}
	told, err := snapshots(ctx, q, ids)
	return append(saved, told...), err
}

// expire ends the job if it should have started by now.
func (j *lockedJob) expire(by string) {
	if at, expires := j.expiry(); expires && !at.After(j.row.At) {
		j.giveUp(by, "SCHEDULER.EXPIRED", "not started by "+at.UTC().Format(time.RFC3339Nano))
	}
}

// nextDue also raises the ledger's floor: under its lock, whoever has not committed will lower it. It is zero where
// something was due already when the transaction began, and was not taken.
func nextDue(ctx context.Context, q *gen.Queries, l *ledger, idle time.Duration) (time.Duration, error) {
	if l.due.IsZero() {
		return idle, nil
	}
	rows, err := q.NextDue(ctx, l.due)
	if err != nil {
		return 0, fmt.Errorf("read next due instant: %w", err)
	}
	if len(rows) == 0 {
		l.nextIsDue(time.Time{})
		return idle, nil
	}
	l.nextIsDue(rows[0].DueAt)
	if !rows[0].DueAt.After(l.at) {
		return 0, nil
	}
	return min(max(rows[0].DueAt.Sub(rows[0].At), time.Millisecond), idle), nil
}

// Listen calls wake whenever something has become due sooner than the clock expects. It ends with ctx
// or with its connection.
func (s *Store) Listen(ctx context.Context, wake func()) error {
	return pgpool.Listen(ctx, s.pool, "jobweaver_due", wake)
}
