package schedulerdb

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/dispatch"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/nullable"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/emit"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/internal/gen"
)

// release releases the jobs that waited for jobs that have ended. It runs under the lock of the ledger, as the
// inserting of new jobs does: so release sees every job that waits. It returns the jobs that it cancels because a
// dependency did not complete.
func (s *Store) release(ctx context.Context, q *gen.Queries, by string, l *dispatch.Ledger) ([]emit.Snapshot, error) {
	var cancelled []emit.Snapshot
	left := dispatch.MaxReleases
	for ended := l.NextEnded(true, left); len(ended) > 0; ended = l.NextEnded(false, left) {
		jobs, n, err := s.releaseDependents(ctx, q, by, l, ended, left)
		if err != nil {
			return nil, err
		}
		cancelled, left = append(cancelled, jobs...), left-n
	}
	for keys := l.NextTurns(); len(keys) > 0; keys = l.NextTurns() {
		if err := takeTurns(ctx, q, l, keys); err != nil {
			return nil, err
		}
	}
	return cancelled, nil
}

// releaseDependents removes up to most dependencies on jobs that have ended, and returns how many it found.
func (s *Store) releaseDependents(
	ctx context.Context, q *gen.Queries, by string, l *dispatch.Ledger, ended []uuid.UUID, most int,
) (cancelled []emit.Snapshot, n int, err error) {
	dropped, err := q.DependenciesDrop(ctx, ended)
	if err != nil {
		return nil, 0, fmt.Errorf("drop dependencies: %w", err)
	}
	l.NoteDependencies(-dropped)
	rows, err := q.DependenciesOf(ctx, gen.DependenciesOfParams{
		AfterIDs: ended, Each: int32Of(max(most/len(ended), 1)), MaxRows: int32Of(most),
	})
	if err != nil {
		return nil, 0, fmt.Errorf("find dependent jobs: %w", err)
	}
	if cancelled, err = s.endWaiting(ctx, q, by, l, rows); err != nil {
		return nil, 0, err
	}
	unreleased, err := q.DependenciesLeft(ctx, ended)
	if err != nil {
		return nil, 0, fmt.Errorf("find dependencies that are left: %w", err)
	}
	l.NoteReleased(len(rows), unreleased)
	return cancelled, len(rows), nil
}

// endWaiting lets the job of each row wait for one dependency less.
func (s *Store) endWaiting(
	ctx context.Context, q *gen.Queries, by string, l *dispatch.Ledger, rows []gen.DependenciesOfRow,
) ([]emit.Snapshot, error) {
	var met gen.DependenciesDeleteParams
	releases := dispatch.NewReleases()
	for _, row := range rows {
		met.AfterIDs, met.JobIDs = append(met.AfterIDs, row.AfterID), append(met.JobIDs, row.JobID)
		releases.Add(dispatch.Dependent(row))
	}
	n, err := q.DependenciesDelete(ctx, met)
	if err != nil {
		return nil, fmt.Errorf("delete dependencies: %w", err)
	}
	l.NoteDependencies(-n)
	var less gen.JobsWaitLessParams
	for _, row := range rows {
		fewer, ready := releases.Take(dispatch.Dependent(row))
		if fewer == 0 {
			continue
		}
		less.JobIDs, less.Ended = append(less.JobIDs, row.JobID), append(less.Ended, fewer)
		if ready {
			l.NoteReady(row.Queue, nullable.Value(row.Lane), row.FairnessKey, row.Rank)
		}
	}
	if len(less.JobIDs) > 0 {
		if err := q.JobsWaitLess(ctx, less); err != nil {
			return nil, fmt.Errorf("release jobs: %w", err)
		}
	}
	return s.cancelDependents(ctx, q, by, l, releases.Failed)
}

// cancelDependents cancels jobs of which a dependency did not complete. Their rows are locked already.
func (s *Store) cancelDependents(
	ctx context.Context, q *gen.Queries, by string, l *dispatch.Ledger, failed map[uuid.UUID]dispatch.Dependent,
) ([]emit.Snapshot, error) {
	jobs, err := lockJobs(ctx, q, slices.Collect(maps.Keys(failed)))
	if err != nil {
		return nil, err
	}
	for id, job := range jobs {
		after := failed[id]
		job.giveUp(by, "SCHEDULER.DEPENDENCY_FAILED",
			fmt.Sprintf("job %s, which had to %s first, ended %s", after.AfterID, after.Verb(), after.EndedAs))
	}
	delta := dispatch.NewDelta()
	cancelled, err := saveJobs(ctx, q, jobs, &delta)
	l.Enter(delta)
	return cancelled, err
}

// giveUp cancels a job that has not started.
func (j *lockedJob) giveUp(by, code, message string) {
	next, ok := j.GiveUp()
	if !ok {
		return
	}
	j.lastError = jobevent.Error{ErrorCode: code, Message: message}
	j.transition(next, jobevent.Transition{Attempt: j.Attempt, By: by, Reason: message, ErrorCode: code})
}

// takeTurns gives the turn to the next job of each key.
// Why an ordering key is not a chain: docs/decisions/scheduling.md#an-ordering-key-is-not-a-chain-of-dependencies
func takeTurns(ctx context.Context, q *gen.Queries, l *dispatch.Ledger, keys map[dispatch.OrderKey]bool) error {
	var p gen.TurnsTakeParams
	for key := range keys {
		p.OrderingKeys, p.OwnerIDs = append(p.OrderingKeys, key.Key), append(p.OwnerIDs, key.Owner)
	}
	if err := q.TurnsYield(ctx, gen.TurnsYieldParams(p)); err != nil {
		return fmt.Errorf("yield turns: %w", err)
	}
	rows, err := q.TurnsTake(ctx, p)
	if err != nil {
		return fmt.Errorf("take turns: %w", err)
	}
	for _, row := range rows {
		if row.BlockedBy == nil && row.Status == string(jobstate.Pending) {
			l.NoteReady(row.Queue, nullable.Value(row.Lane), row.FairnessKey, row.Rank)
		}
	}
	return nil
}

// maxOverdue bounds the rows that one search for overdue releases reads.
const maxOverdue = 1000

// walk is the position up to which the searches for overdue releases have come.
type walk struct {
	afterID, jobID uuid.UUID
	key            dispatch.OrderKey
}

// findOverdue finds jobs that should have been released before, and enters them into the delta: a process may have died
// in an unforeseen way before it released them. Each search continues where the last one stopped.
func (s *Store) findOverdue(ctx context.Context, q *gen.Queries, delta *dispatch.Delta) error {
	s.walks.Lock()
	defer s.walks.Unlock()
	w := &s.walks.walk
	rows, err := q.DependenciesOverdue(ctx, gen.DependenciesOverdueParams{
		AfterID: w.afterID, JobID: w.jobID, MaxRows: maxOverdue,
	})
	if err != nil {
		return fmt.Errorf("look for overdue dependencies: %w", err)
	}
	w.afterID, w.jobID = uuid.Nil, uuid.Nil
	var ended []uuid.UUID
	for _, row := range rows {
		if row.Ended {
			ended = append(ended, row.AfterID)
		}
		if len(rows) == maxOverdue {
			w.afterID, w.jobID = row.AfterID, row.JobID
		}
	}
	delta.NoteOverdue(ended, len(rows))
	keys, err := q.TurnsOverdue(ctx, gen.TurnsOverdueParams{
		OrderingKey: w.key.Key, OwnerID: w.key.Owner, MaxKeys: maxOverdue,
	})
	if err != nil {
		return fmt.Errorf("look for overdue turns: %w", err)
	}
	w.key = dispatch.OrderKey{}
	for _, row := range keys {
		key := dispatch.OrderKey{Key: row.OrderingKey, Owner: row.OwnerID}
		if !row.HasTurn {
			delta.NoteTurn(key)
		}
		if len(keys) == maxOverdue {
			w.key = key
		}
	}
	return nil
}
