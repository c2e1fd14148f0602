package schedulerdb

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/dispatch"
	"github.com/jobweaver/jobweaver/shared/nullable"
	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/emit"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/internal/gen"
)

// maxDue bounds one pass of the clock. If more is due, the pass also takes a quarter as many that became due last.
const maxDue = 1000

// lockedPause is when the clock tries a due row again that another transaction had locked.
const lockedPause = 100 * time.Millisecond

// Due makes due jobs ready, asks the API about overdue callbacks, cancels expired jobs, and dispatches as many jobs as
// there is room for. next is the time until the next job is due, at most idle. It is zero if one pass may not have
// dispatched all jobs.
func (s *Store) Due(ctx context.Context, idle time.Duration) (effects emit.Effects, next time.Duration, err error) {
	var r result
	err = s.step(ctx, &r, nil, func(t step) error {
		r, next = result{}, idle
		delta := dispatch.NewDelta()
		if r.Jobs, err = s.takeOverdue(ctx, t.Queries, &delta); err != nil {
			return err
		}
		due, err := t.JobsDue(ctx, gen.JobsDueParams{
			MaxJobs: maxDue, FullPage: maxDue, MaxLast: maxDue / 4, SilentAfter: silentAfter,
		})
		if err != nil {
			return fmt.Errorf("make due jobs ready: %w", err)
		}
		ids := make([]uuid.UUID, len(due))
		for i, job := range due {
			ids[i] = job.JobID
			if job.BlockedBy == nil {
				delta.NoteWaiting(job.Queue, nullable.Value(job.Lane), job.FairnessKey, job.Rank)
			} else if key, some := dispatch.KeyOf(job.OrderingKey, job.OwnerID); some {
				delta.NoteTurn(key) // no other transaction could give it the turn while we had it locked
			}
			if job.ExpiresAt != nil && job.StartedAt == nil {
				delta.NoteDue(*job.ExpiresAt)
			}
		}
		l, err := s.lockLedger(ctx, t.Queries)
		if err != nil {
			return err
		}
		l.IsClock()
		l.Enter(delta)
		if next, err = nextDue(ctx, t.Queries, l, idle); err != nil {
			return err
		}
		if next == 0 && len(due) < maxDue {
			next = lockedPause
		}
		if err := s.dispatchLocked(ctx, t, "dispatch", l, &r); err != nil {
			return err
		}
		r.changed = ids
		next = l.NextStep(next, len(r.sentOut))
		return nil
	})
	return r.Effects, next, err
}

// takeOverdue cancels expired jobs, and republishes jobs that wait past the deadline of their callback: the API knows
// whether it has accepted a callback, and decides the outcome of the attempt.
func (s *Store) takeOverdue(ctx context.Context, q *gen.Queries, delta *dispatch.Delta) ([]emit.Snapshot, error) {
	ids, err := q.JobsOverdue(ctx, maxDue)
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
	saved, err := saveJobs(ctx, q, jobs, delta)
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
		delta.NoteDue(job.DueAt)
	}
	waiting, err := snapshots(ctx, q, ids)
	return append(saved, waiting...), err
}

// expire cancels the job if it has not started by the instant at which it expires.
func (j *lockedJob) expire(by string) {
	if at, expires := j.expiry(); expires && !at.After(j.row.At) {
		j.giveUp(by, "SCHEDULER.EXPIRED", "not started by "+at.UTC().Format(time.RFC3339Nano))
	}
}

// nextDue returns the time until the next job is due, and raises the ledger's floor to that instant. A transaction with
// an earlier instant that has not entered it yet waits for the lock, and lowers the floor afterwards. nextDue returns
// zero if a job was already due when the transaction began: this pass did not take it.
func nextDue(ctx context.Context, q *gen.Queries, l *dispatch.Ledger, idle time.Duration) (time.Duration, error) {
	if l.DueFloor().IsZero() {
		return idle, nil
	}
	rows, err := q.NextDue(ctx, l.DueFloor())
	if err != nil {
		return 0, fmt.Errorf("read next due instant: %w", err)
	}
	if len(rows) == 0 {
		l.RaiseDueFloor(time.Time{})
		return idle, nil
	}
	l.RaiseDueFloor(rows[0].DueAt)
	if !rows[0].DueAt.After(l.At) {
		return 0, nil
	}
	return min(max(rows[0].DueAt.Sub(rows[0].At), time.Millisecond), idle), nil
}

// Listen calls wake whenever a job is due sooner than the clock expects. It returns when ctx or its connection ends.
func (s *Store) Listen(ctx context.Context, wake func()) error {
	return pgpool.Listen(ctx, s.pool, "jobweaver_due", wake)
}
