package schedulerdb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/dispatch"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/emit"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/internal/gen"
)

// Command applies commands, each only once by its number, and publishes the current state of jobs that a report names.
// It keeps a command for an unknown job, and Ingest applies it when the job arrives: they are on different topics. A
// delete is the exception: the API sends it only for an ended job, so an unknown job was known before, and Command
// publishes it as deleted.
func (s *Store) Command(ctx context.Context, commands []jobevent.Command) (emit.Effects, error) {
	for _, c := range commands {
		if err := checkCommand(c); err != nil {
			return emit.Effects{}, err
		}
	}
	effects, early, err := s.applyCommands(ctx, commands)
	if err != nil || len(early) == 0 {
		return effects, err
	}
	if err := s.keepEarly(ctx, early); err != nil {
		return emit.Effects{}, err
	}
	// A job that arrived before the commands were kept is known now, and one that arrives later finds them.
	more, _, err := s.applyCommands(ctx, early)
	effects.Add(more)
	return effects, err
}

// applyTries is how often commands are applied while jobs complete between two statements.
const applyTries = 5

// applyCommands applies the commands whose jobs are known, and returns the others.
func (s *Store) applyCommands(
	ctx context.Context, commands []jobevent.Command,
) (effects emit.Effects, early []jobevent.Command, err error) {
	var r result
	for range applyTries {
		if err := s.leaveCohorts(ctx, commanded(commands)); err != nil {
			return effects, nil, err
		}
		err = s.step(ctx, &r, nil, func(t step) (err error) {
			r = result{}
			delta := dispatch.NewDelta()
			if early, err = s.command(ctx, t.Queries, commands, &r, &delta); err != nil {
				return err
			}
			return s.dispatch(ctx, t, "command", delta, &r)
		})
		if !errors.Is(err, errMoved) {
			break
		}
	}
	return r.Effects, early, err
}

// commanded returns the jobs that the commands change.
func commanded(commands []jobevent.Command) []uuid.UUID {
	var ids []uuid.UUID
	for _, c := range commands {
		if c.Command != jobevent.CommandReport {
			ids = append(ids, c.JobID)
		}
	}
	return ids
}

func (s *Store) command(
	ctx context.Context, q *gen.Queries, commands []jobevent.Command, r *result, delta *dispatch.Delta,
) (early []jobevent.Command, err error) {
	ids := commanded(commands)
	var repeat []uuid.UUID
	var unknown []emit.Snapshot
	for _, c := range commands {
		if c.Command == jobevent.CommandReport {
			newer, missing, err := newerThan(ctx, q, c.Reports)
			if err != nil {
				return nil, err
			}
			repeat, unknown = append(repeat, newer...), append(unknown, missing...)
		}
	}
	jobs, err := lockAnyJobs(ctx, q, ids)
	if err != nil {
		return nil, err
	}
	for _, c := range commands {
		switch job := jobs[c.JobID]; {
		case c.Command == jobevent.CommandReport:
		case job != nil:
			job.command(c)
		case c.Command != jobevent.CommandDelete:
			early = append(early, c)
		}
	}
	if err := changeJobs(ctx, q, jobs); err != nil {
		return nil, err
	}
	if r.Jobs, err = saveJobs(ctx, q, jobs, delta); err != nil {
		return nil, err
	}
	if err := republish(ctx, q, slices.Concat(ids, repeat), r, delta); err != nil {
		return nil, err
	}
	r.Jobs = append(r.Jobs, unknown...)
	now := time.Now()
	for _, c := range commands {
		if c.Command == jobevent.CommandDelete && c.Version > 0 && jobs[c.JobID] == nil {
			r.Jobs = append(r.Jobs, emit.Snapshot{JobID: c.JobID, Version: c.Version, DeletedAt: &now})
		}
	}
	return early, nil
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
	together, err := members(ctx, q, p.JobIDs) // first, as in snapshots
	if err != nil {
		return nil, nil, err
	}
	rows, err := q.JobsNewer(ctx, p)
	if err != nil {
		return nil, nil, fmt.Errorf("answer report: %w", err)
	}
	versions := map[uuid.UUID]int64{}
	for _, row := range together {
		versions[row.JobID] = row.Version
	}
	for _, job := range known {
		if versions[job.JobID] > job.Version {
			newer = append(newer, job.JobID)
		}
	}
	for _, row := range rows {
		switch {
		case row.IsUnknown && versions[row.JobID] > 0:
		case row.IsUnknown:
			unknown = append(unknown, emit.Snapshot{
				JobID: row.JobID, Version: row.Version, Status: jobevent.StatusUnknown, UpdatedAt: time.Now(),
			})
		default:
			newer = append(newer, row.JobID)
		}
	}
	return newer, unknown, nil
}
