package schedulerdb

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/dispatch"
	"github.com/jobweaver/jobweaver/shared/nullable"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/internal/gen"
)

// dispatch is the only step that dispatches attempts. Every transaction that brings work or makes room ends with it;
// delta has what the transaction changed. The package dispatch describes the locks and why they cannot deadlock.
func (s *Store) dispatch(ctx context.Context, t step, by string, delta dispatch.Delta, r *result) error {
	l, err := s.lockLedger(ctx, t.Queries)
	if err != nil {
		return err
	}
	l.Enter(delta)
	return s.dispatchLocked(ctx, t, by, l, r)
}

// dispatchLocked releases jobs that waited for others, dispatches as many jobs as there is room for, and writes the
// ledger.
// Why attempts go out one by one: docs/decisions/dispatch.md#attempts-go-out-one-by-one
func (s *Store) dispatchLocked(ctx context.Context, t step, by string, l *dispatch.Ledger, r *result) error {
	ended, err := s.release(ctx, t.Queries, by, l)
	if err != nil {
		return err
	}
	r.Jobs = append(r.Jobs, ended...)
	if len(l.ReadyQueues()) > 0 || l.IsSorted() {
		workers, err := t.WorkersLive(ctx, silentAfter)
		if err != nil {
			return fmt.Errorf("list workers: %w", err)
		}
		room, err := newRoom(ctx, t.Queries, workers, l)
		if err != nil {
			return err
		}
		if err := s.sendOut(ctx, t, by, room, l, l.ReadyQueues(), r); err != nil {
			return err
		}
	}
	r.transitions = l.Transitions()
	return saveLedger(ctx, t.last, l)
}

// sendOut dispatches jobs of the queues until the room is used up.
func (s *Store) sendOut(
	ctx context.Context, t step, by string, room *dispatch.Room, l *dispatch.Ledger, queues []string, r *result,
) error {
	for _, queue := range queues {
		most := min(dispatch.MaxStep, l.RoomOfQueue(queue))
		taken := most
		if l.IsSorted() || l.HasBuilds() {
			taken = dispatch.MaxStep // the best targets may be of workers that do not run the best jobs
		}
		targets := room.Take(queue, taken)
		if len(targets) == 0 {
			continue
		}
		if err := t.flush(ctx); err != nil { // the batch's new jobs may be among the best
			return err
		}
		var left []dispatch.Target
		var err error
		if l.UsesShares(queue) || l.UsesLanes(queue) {
			left, err = s.sendPicked(ctx, t.Queries, by, l, queue, most, targets, r)
		} else {
			left, err = s.sendBest(ctx, t.Queries, by, l, queue, most, targets, r)
		}
		if err != nil {
			return err
		}
		room.GiveBack(queue, left)
	}
	return nil
}

// sendBest dispatches up to most of the best jobs of a queue to targets, and returns those that it did not use. It is
// for queues without lanes: no control of a job type or owner is or was in force, and each worker runs each job.
func (s *Store) sendBest(
	ctx context.Context, q *gen.Queries, by string, l *dispatch.Ledger, queue string, most int, targets []dispatch.Target,
	r *result,
) ([]dispatch.Target, error) {
	asked := targets[:min(most, len(targets))]
	rows, err := q.JobsDispatch(ctx, gen.JobsDispatchParams{
		QueueName: queue, Floor: l.Floor(queue), Partitions: dispatch.Partitions(asked), Lease: s.cfg.Lease, ByFunction: by,
	})
	if err != nil {
		return nil, fmt.Errorf("dispatch queue %s: %w", queue, err)
	}
	var last time.Time
	for _, row := range rows {
		l.NoteOut(queue, "", nullable.Value(row.Partition), 1)
		r.sentOut = append(r.sentOut, row.JobID)
		if row.Rank.After(last) {
			last = row.Rank
		}
	}
	l.NoteSent(queue, len(rows), len(asked), last)
	isMember := func(row gen.JobsDispatchRow) bool { return row.Together }
	if len(rows) < leastMembers && slices.ContainsFunc(rows, isMember) { // a part for each few would cost more than rows
		if err := leaveBest(ctx, q, queue, l.Floor(queue), 1); err != nil {
			return nil, err
		}
	}
	return targets[len(rows):], nil
}

// sendPicked does the same for a queue with lanes, or in which jobs of several fairness keys wait.
func (s *Store) sendPicked(
	ctx context.Context, q *gen.Queries, by string, l *dispatch.Ledger, queue string, most int, targets []dispatch.Target,
	r *result,
) ([]dispatch.Target, error) {
	most = min(most, len(targets))
	if err := leaveBest(ctx, q, queue, time.Time{}, max(most, dispatch.MaxLooks)); err != nil {
		return nil, err
	}
	unseen, err := q.CohortBest(ctx, queue)
	if err != nil {
		return nil, fmt.Errorf("look for the best cohort of queue %s: %w", queue, err)
	}
	p := dispatch.NewPicker(l, queue, most, targets)
	for again := true; again; {
		for keys, sources := p.Next(); keys != nil || len(sources) > 0; keys, sources = p.Next() {
			if err := show(ctx, q, queue, p, keys, sources); err != nil {
				return nil, fmt.Errorf("read waiting jobs of queue %s: %w", queue, err)
			}
		}
		sent, err := s.sendChosen(ctx, q, by, l, queue, p.Chosen(), p.Moved(), r)
		if err != nil {
			return nil, err
		}
		again = p.Sent(sent)
	}
	p.Finish()
	if len(unseen) > 0 {
		l.NoteUnseen(queue, unseen[0].FairnessKey, unseen[0].Rank, len(p.Left()) > len(targets)-most)
	}
	return p.Left(), nil
}

// show shows the picker the best jobs of keys, or further jobs of sources.
func show(
	ctx context.Context, q *gen.Queries, queue string, p *dispatch.Picker, keys *dispatch.KeyReach,
	sources []*dispatch.Source,
) error {
	if keys != nil {
		rows, err := q.KeysBest(ctx, gen.KeysBestParams{
			QueueName: queue, Lanes: keys.Lanes, FromKey: keys.From, Closed: keys.Closed, MaxKeys: int32Of(keys.Keys),
		})
		for _, row := range rows {
			p.ShowKey(dispatch.Candidate(row))
		}
		return err
	}
	after := gen.JobsAfterParams{QueueName: queue}
	for _, source := range sources {
		after.Lanes, after.Keys = append(after.Lanes, source.Lane), append(after.Keys, source.Key)
		after.AfterRanks, after.AfterIDs = append(after.AfterRanks, source.AfterRank), append(after.AfterIDs, source.AfterID)
		after.Mosts = append(after.Mosts, int32Of(source.Most))
	}
	rows, err := q.JobsAfter(ctx, after)
	jobs := make([]dispatch.Candidate, len(rows))
	for i, row := range rows {
		jobs[i] = dispatch.Candidate(row)
	}
	if err == nil {
		p.Show(sources, jobs)
	}
	return err
}

// sendChosen moves jobs to other lanes, and dispatches the chosen ones to their targets. It returns those that it
// dispatched: not those that another transaction has locked.
func (s *Store) sendChosen(
	ctx context.Context, q *gen.Queries, by string, l *dispatch.Ledger, queue string, chosen, moved dispatch.Picked,
	r *result,
) ([]uuid.UUID, error) {
	if len(moved.JobIDs) > 0 {
		if err := q.JobsChangeLane(ctx, gen.JobsChangeLaneParams{JobIDs: moved.JobIDs, Lanes: moved.Lanes}); err != nil {
			return nil, fmt.Errorf("change lanes in queue %s: %w", queue, err)
		}
	}
	if len(chosen.JobIDs) == 0 {
		return nil, nil
	}
	rows, err := q.JobsSendOut(ctx, gen.JobsSendOutParams{
		JobIDs: chosen.JobIDs, Lanes: chosen.Lanes, Lease: s.cfg.Lease, ByFunction: by,
		Partitions: dispatch.Partitions(chosen.Targets),
	})
	if err != nil {
		return nil, fmt.Errorf("dispatch queue %s: %w", queue, err)
	}
	sent := make([]uuid.UUID, len(rows))
	for i, row := range rows {
		l.NoteOut(queue, "", nullable.Value(row.Partition), 1)
		sent[i] = row.JobID
	}
	r.sentOut = append(r.sentOut, sent...)
	return sent, nil
}
