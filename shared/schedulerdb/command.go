package schedulerdb

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/dispatch"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobevent/emit"
	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/internal/gen"
)

// Command applies commands, each only once by its number, and publishes the current state of jobs that a report names.
// A command for an unknown job changes nothing: the job may not have arrived yet, and the API republishes the command
// until it is answered. A delete is the exception: the API sends it only for an ended job, so an unknown job was known
// before, and Command publishes it as deleted.
func (s *Store) Command(ctx context.Context, commands []jobevent.Command) (emit.Effects, error) {
	for _, c := range commands {
		if err := checkCommand(c); err != nil {
			return emit.Effects{}, err
		}
	}
	var r result
	err := s.step(ctx, &r, nil, func(t step) error {
		r = result{}
		delta := dispatch.NewDelta()
		if err := s.command(ctx, t.Queries, commands, &r, &delta); err != nil {
			return err
		}
		return s.dispatch(ctx, t, "command", delta, &r)
	})
	return r.Effects, err
}

func (s *Store) command(
	ctx context.Context, q *gen.Queries, commands []jobevent.Command, r *result, delta *dispatch.Delta,
) error {
	var ids, repeat []uuid.UUID
	var unknown []emit.Snapshot
	for _, c := range commands {
		if c.Command == jobevent.CommandReport {
			newer, missing, err := newerThan(ctx, q, c.Reports)
			if err != nil {
				return err
			}
			repeat, unknown = append(repeat, newer...), append(unknown, missing...)
		} else {
			ids = append(ids, c.JobID)
		}
	}
	jobs, err := lockAnyJobs(ctx, q, ids)
	if err != nil {
		return err
	}
	for _, c := range commands {
		if job := jobs[c.JobID]; job != nil && c.Command != jobevent.CommandReport {
			job.command(c)
		}
	}
	if err := changeJobs(ctx, q, jobs); err != nil {
		return err
	}
	if r.Jobs, err = saveJobs(ctx, q, jobs, delta); err != nil {
		return err
	}
	if err := republish(ctx, q, append(ids, repeat...), r, delta); err != nil {
		return err
	}
	r.Jobs = append(r.Jobs, unknown...)
	now := time.Now()
	for _, c := range commands {
		if c.Command == jobevent.CommandDelete && c.Version > 0 && jobs[c.JobID] == nil {
			r.Jobs = append(r.Jobs, emit.Snapshot{JobID: c.JobID, Version: c.Version, DeletedAt: &now})
		}
	}
	return nil
}

// Known returns those of the jobs that have a row in the scheduler's database; a tombstone counts.
func (s *Store) Known(ctx context.Context, ids []uuid.UUID) ([]uuid.UUID, error) {
	known, err := gen.New(s.pool).JobsKnown(ctx, ids)
	if err != nil {
		return nil, pgpool.Classify(fmt.Errorf("look for known jobs: %w", err))
	}
	return known, nil
}

// newerThan returns the jobs that have a higher version than the report names, and snapshots that report the jobs that
// the scheduler does not know.
func newerThan(
	ctx context.Context, q *gen.Queries, known []jobevent.ReportJob,
) (newer []uuid.UUID, unknown []emit.Snapshot, err error) {
	var p gen.JobsNewerParams
	for _, job := range known {
		p.JobIDs = append(p.JobIDs, job.JobID)
		p.Versions = append(p.Versions, job.Version)
	}
	rows, err := q.JobsNewer(ctx, p)
	if err != nil {
		return nil, nil, fmt.Errorf("answer report: %w", err)
	}
	for _, row := range rows {
		if row.IsUnknown {
			unknown = append(unknown, emit.Snapshot{
				JobID: row.JobID, Version: row.Version, Status: jobevent.StatusUnknown, UpdatedAt: time.Now(),
			})
		} else {
			newer = append(newer, row.JobID)
		}
	}
	return newer, unknown, nil
}
