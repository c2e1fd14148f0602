package schedulerdb

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/internal/gen"
)

// releaseMost bounds the jobs that one transaction releases: the lock of dispatching is not held for ten thousand.
const releaseMost = 1000

// release lets go what waited for the jobs that have ended, under the lock of dispatching: whoever inserts does so
// under it too, so that none can begin to wait for what has just ended unseen. Jobs that end by it are returned.
func (s *Store) release(ctx context.Context, q *gen.Queries, by string, l *ledger) ([]Snapshot, error) {
	var told []Snapshot
	most, isFirst := releaseMost, true
	for l.Dependents > 0 && (len(l.ended) > 0 || isFirst && len(l.Ended) > 0) {
		if most <= 0 { // the clock goes on
			l.Ended = append(l.Ended, l.ended...)
			break
		}
		isFirst = false
		ended := slices.Concat(l.ended, l.Ended)
		l.ended = nil
		cancelled, n, err := s.releaseDependents(ctx, q, by, l, ended, most)
		if err != nil {
			return nil, err
		}
		told, most = append(told, cancelled...), most-n
	}
	l.ended = nil
	for len(l.keys) > 0 {
		keys := l.keys
		l.keys = nil
		if err := takeTurns(ctx, q, l, keys); err != nil {
			return nil, err
		}
	}
	return told, nil
}

// releaseDependents says of n jobs that they wait for one less.
func (s *Store) releaseDependents(
	ctx context.Context, q *gen.Queries, by string, l *ledger, ended []uuid.UUID, most int,
) (told []Snapshot, n int, err error) {
	dropped, err := q.DependenciesDrop(ctx, ended)
	if err != nil {
		return nil, 0, fmt.Errorf("drop dependencies: %w", err)
	}
	l.Dependents -= dropped
	rows, err := q.DependenciesOf(ctx, gen.DependenciesOfParams{AfterIDs: ended, MaxRows: int32Of(most)})
	if err != nil {
		return nil, 0, fmt.Errorf("find jobs that waited: %w", err)
	}
	if told, err = s.endWaiting(ctx, q, by, l, rows); err != nil {
		return nil, 0, err
	}
	// Also of rows that somebody has under his lock: whoever comes next looks at them again.
	if l.Ended, err = q.DependenciesLeft(ctx, ended); err != nil {
		return nil, 0, fmt.Errorf("find jobs that wait still: %w", err)
	}
	l.changed = l.changed || dropped > 0 || len(rows) > 0 || len(l.Ended) > 0
	return told, len(rows), nil
}

// endWaiting takes in that each of the rows' jobs has one job less to wait for.
func (s *Store) endWaiting(
	ctx context.Context, q *gen.Queries, by string, l *ledger, rows []gen.DependenciesOfRow,
) ([]Snapshot, error) {
	var met gen.DependenciesDeleteParams
	fewer := map[uuid.UUID]int32{}
	failed := map[uuid.UUID]gen.DependenciesOfRow{}
	for _, row := range rows {
		met.AfterIDs, met.JobIDs = append(met.AfterIDs, row.AfterID), append(met.JobIDs, row.JobID)
		switch {
		case row.WaitsFor == nil: // it has ended, or was told to run all the same
		case row.EndedAs != string(jobstate.Completed) && row.RunsAnyway == nil:
			failed[row.JobID] = row
		default:
			fewer[row.JobID]++
		}
	}
	n, err := q.DependenciesDelete(ctx, met)
	if err != nil {
		return nil, fmt.Errorf("delete dependencies: %w", err)
	}
	l.Dependents -= n
	var less gen.JobsWaitLessParams
	for _, row := range rows {
		_, fails := failed[row.JobID]
		ended, some := fewer[row.JobID]
		if fails || !some {
			continue
		}
		delete(fewer, row.JobID)
		less.JobIDs, less.Ended = append(less.JobIDs, row.JobID), append(less.Ended, ended)
		isFree := *row.WaitsFor == ended && orEmpty(row.BlockedBy) == byDependency
		if isFree && row.Status == string(jobstate.Pending) {
			l.waits(row.Queue, orEmpty(row.Lane), row.Rank)
		}
	}
	if len(less.JobIDs) > 0 {
		if err := q.JobsWaitLess(ctx, less); err != nil {
			return nil, fmt.Errorf("release jobs: %w", err)
		}
	}
	return s.giveUp(ctx, q, by, l, failed)
}

// giveUp cancels jobs of which one that they waited for did not complete. Their rows are locked.
func (s *Store) giveUp(
	ctx context.Context, q *gen.Queries, by string, l *ledger, failed map[uuid.UUID]gen.DependenciesOfRow,
) ([]Snapshot, error) {
	jobs, err := lockJobs(ctx, q, slices.Collect(maps.Keys(failed)))
	if err != nil {
		return nil, err
	}
	for id, job := range jobs {
		after := failed[id]
		job.giveUp(by, "SCHEDULER.DEPENDENCY_FAILED",
			fmt.Sprintf("job %s, which had to complete first, ended %s", after.AfterID, after.EndedAs))
	}
	news := newTally()
	told, err := saveJobs(ctx, q, jobs, &news)
	l.add(news)
	return told, err
}

// giveUp ends a job that has not started.
func (j *lockedJob) giveUp(by, code, message string) {
	next, ok := j.GiveUp()
	if !ok {
		return
	}
	j.lastError = jobevent.Error{ErrorCode: code, Message: message}
	j.move(next, jobevent.Move{Attempt: j.Attempt, By: by, Reason: message, ErrorCode: code})
}

// takeTurns lets the next in line of each key have its turn.
func takeTurns(ctx context.Context, q *gen.Queries, l *ledger, keys map[orderKey]bool) error {
	var p gen.TurnsTakeParams
	for key := range keys {
		p.OrderingKeys, p.OwnerIDs = append(p.OrderingKeys, key.key), append(p.OwnerIDs, key.owner)
	}
	rows, err := q.TurnsTake(ctx, p)
	if err != nil {
		return fmt.Errorf("give turns: %w", err)
	}
	for _, row := range rows {
		if row.BlockedBy == nil && row.Status == string(jobstate.Pending) {
			l.waits(row.Queue, orEmpty(row.Lane), row.Rank)
			l.changed = true
		}
	}
	return nil
}

// overdueMost bounds what one look for overdue releases walks over.
const overdueMost = 1000

// walk is how far the looks for what nobody released have come.
type walk struct {
	afterID, jobID uuid.UUID
	key            orderKey
}

// overdue finds what should have been released long ago, for who released may have died in a way that nobody
// thought of, and enters it anew. Each look walks on from the one before.
func (s *Store) overdue(ctx context.Context, q *gen.Queries, news *tally) error {
	s.walks.Lock()
	defer s.walks.Unlock()
	w := &s.walks.walk
	rows, err := q.DependenciesOverdue(ctx, gen.DependenciesOverdueParams{
		AfterID: w.afterID, JobID: w.jobID, MaxRows: overdueMost,
	})
	if err != nil {
		return fmt.Errorf("look for overdue dependencies: %w", err)
	}
	w.afterID, w.jobID = uuid.Nil, uuid.Nil
	news.dependents = int64(len(rows)) // at least
	for _, row := range rows {
		if row.Ended {
			news.ended = append(news.ended, row.AfterID)
		}
		if len(rows) == overdueMost {
			w.afterID, w.jobID = row.AfterID, row.JobID
		}
	}
	news.ended = slices.Compact(news.ended)
	keys, err := q.TurnsOverdue(ctx, gen.TurnsOverdueParams{
		OrderingKey: w.key.key, OwnerID: w.key.owner, MaxKeys: overdueMost,
	})
	if err != nil {
		return fmt.Errorf("look for overdue turns: %w", err)
	}
	w.key = orderKey{}
	for _, row := range keys {
		key := orderKey{row.OrderingKey, row.OwnerID}
		if !row.HasTurn {
			news.turns(key)
		}
		if len(keys) == overdueMost {
			w.key = key
		}
	}
	return nil
}
