package schedulerdb

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/emit"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/internal/gen"
)

// Retention has the settings of how long ended jobs and tombstones are kept.
type Retention struct {
	Completed time.Duration `envconfig:"RETAIN_COMPLETED" default:"168h" desc:"how long COMPLETED jobs are kept, at least 24h; 0: forever"`
	Failed    time.Duration `envconfig:"RETAIN_FAILED" default:"720h" desc:"how long FAILED jobs are kept, at least 24h; 0: forever"`
	Cancelled time.Duration `envconfig:"RETAIN_CANCELLED" default:"168h" desc:"how long CANCELLED jobs are kept, at least 24h; 0: forever"`
	Forget    time.Duration `envconfig:"FORGET_AFTER" default:"192h" desc:"how long the tombstone of a deleted job is kept, longer than topics keep records"`
}

// leastRetention is longer than the longest outage after which the API must still receive the full end of a job.
const leastRetention = 24 * time.Hour

// Check refuses impossible settings. Its errors begin with the setting's name.
func (r Retention) Check() error {
	for _, setting := range []struct {
		name string
		age  time.Duration
	}{{"RETAIN_COMPLETED", r.Completed}, {"RETAIN_FAILED", r.Failed}, {"RETAIN_CANCELLED", r.Cancelled}} {
		if setting.age != 0 && setting.age < leastRetention {
			return fmt.Errorf("%s: %s is shorter than %s: the end of a job must reach the API before its deletion",
				setting.name, setting.age, leastRetention)
		}
	}
	if r.Forget < jobevent.RecordsGone {
		return fmt.Errorf("FORGET_AFTER: %s is shorter than %s, for which topics may keep records",
			r.Forget, jobevent.RecordsGone)
	}
	return nil
}

// youngest returns the least age at which a job can be deleted or forgotten.
func (r Retention) youngest() time.Duration {
	least := r.Forget
	for _, age := range []time.Duration{r.Completed, r.Failed, r.Cancelled} {
		if age > 0 {
			least = min(least, age)
		}
	}
	return least
}

// Retired is the result of one page of a walk over old jobs.
type Retired struct {
	Last               uuid.UUID // the next page begins after it
	Deleted, Forgotten int
	More               bool
}

// Retire handles the next page of old jobs. It deletes jobs that ended too long ago, as a delete command does, and
// removes tombstones that are too old. It waits for no lock, and takes no part in dispatching.
func (s *Store) Retire(
	ctx context.Context, keep Retention, after uuid.UUID, limit int,
) (effects emit.Effects, done Retired, err error) {
	now := time.Now()
	p := gen.JobsOldParams{
		CompletedBefore: beforeOf(now, keep.Completed), FailedBefore: beforeOf(now, keep.Failed),
		CancelledBefore: beforeOf(now, keep.Cancelled), DeletedBefore: now.Add(-keep.Forget),
		AfterID: after, UntilID: firstIDAt(now.Add(-keep.youngest())), MaxJobs: int32Of(limit),
	}
	err = s.tx(ctx, func(q *gen.Queries) error {
		p := p // the transaction may be tried again
		effects, done = emit.Effects{}, Retired{Last: after}
		rows, err := q.JobsOld(ctx, p)
		if err != nil {
			return fmt.Errorf("read old jobs: %w", err)
		}
		var over, forgotten []uuid.UUID
		for _, row := range rows {
			done.Last = row.JobID
			if row.IsOver {
				over = append(over, row.JobID)
			}
			if row.IsForgotten {
				forgotten = append(forgotten, row.JobID)
			}
		}
		if done.More = len(rows) == limit; done.More {
			p.UntilID = done.Last
		}
		if effects.Jobs, err = retire(ctx, q, p, over); err != nil {
			return err
		}
		if err := retireCohorts(ctx, q, p, &effects, &done); err != nil {
			return err
		}
		done.Deleted = len(effects.Jobs)
		if len(forgotten) == 0 {
			return nil
		}
		n, err := q.JobsForget(ctx, gen.JobsForgetParams{JobIDs: forgotten, DeletedBefore: p.DeletedBefore})
		if err != nil {
			return fmt.Errorf("forget jobs: %w", err)
		}
		done.Forgotten = int(n)
		return nil
	})
	return effects, done, err
}

func retire(ctx context.Context, q *gen.Queries, p gen.JobsOldParams, over []uuid.UUID) ([]emit.Snapshot, error) {
	if len(over) == 0 {
		return nil, nil
	}
	rows, err := q.JobsRetire(ctx, gen.JobsRetireParams{
		JobIDs: over, CompletedBefore: p.CompletedBefore, FailedBefore: p.FailedBefore, CancelledBefore: p.CancelledBefore,
	})
	if err != nil {
		return nil, fmt.Errorf("retire jobs: %w", err)
	}
	ended, err := q.EndedRetire(ctx, gen.EndedRetireParams{JobIDs: over, CompletedBefore: p.CompletedBefore})
	if err != nil {
		return nil, fmt.Errorf("retire completed jobs: %w", err)
	}
	deleted := make([]emit.Snapshot, 0, len(rows)+len(ended))
	for _, row := range rows {
		deleted = append(deleted, deletedSnapshot(gen.JobsDeleteRow(row)))
	}
	for _, row := range ended {
		deleted = append(deleted, retiredSnapshot(row))
	}
	return deleted, nil
}

func retiredSnapshot(row gen.EndedRetireRow) emit.Snapshot {
	return deletedSnapshot(gen.JobsDeleteRow{
		JobID: row.JobID, TraceID: row.TraceID, Status: row.Status, Version: row.Version, Attempt: row.Attempt,
		FinishedAt: &row.FinishedAt, UpdatedAt: row.UpdatedAt, DeletedAt: row.DeletedAt,
	})
}

// cohortsOfPage is how many rows of ended_cohorts a page has: more than those of one block, at which the page before
// may have ended.
const cohortsOfPage = jobevent.BlockSize + 8

// retireCohorts does so for jobs that completed in cohorts, as far as the page goes. It ends the page early if there
// are many.
func retireCohorts(
	ctx context.Context, q *gen.Queries, p gen.JobsOldParams, effects *emit.Effects, done *Retired,
) error {
	if p.CompletedBefore == nil {
		return nil
	}
	rows, err := q.EndedCohortsOld(ctx, gen.EndedCohortsOldParams{
		CompletedBefore: *p.CompletedBefore, AfterID: p.AfterID, UntilID: p.UntilID, Most: cohortsOfPage,
	})
	if err != nil {
		return fmt.Errorf("read old cohorts: %w", err)
	}
	var over gen.EndedCohortsRetireParams
	for _, row := range rows {
		if row.IsOver {
			over.BlockIDs, over.Places = append(over.BlockIDs, row.BlockID), append(over.Places, row.Places)
		}
	}
	if len(rows) == cohortsOfPage {
		done.Last, done.More = rows[len(rows)-1].BlockID, true
	}
	if len(over.BlockIDs) == 0 {
		return nil
	}
	retired, err := q.EndedCohortsRetire(ctx, over)
	if err != nil {
		return fmt.Errorf("retire jobs that completed in cohorts: %w", err)
	}
	for _, row := range retired {
		effects.Jobs = append(effects.Jobs, retiredSnapshot(gen.EndedRetireRow(row)))
	}
	return nil
}

// beforeOf returns the instant before which jobs are too old; nil: they are kept for ever.
func beforeOf(now time.Time, age time.Duration) *time.Time {
	if age == 0 {
		return nil
	}
	at := now.Add(-age)
	return &at
}

// firstIDAt returns an id that is higher than every UUIDv7 of an earlier instant.
func firstIDAt(at time.Time) (id uuid.UUID) {
	ms := max(at.UnixMilli(), 0)
	for i := range 6 {
		id[i] = byte(ms >> (40 - 8*i))
	}
	return id
}
