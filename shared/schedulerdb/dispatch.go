package schedulerdb

import (
	"context"
	"fmt"
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
		if l.UsesShares(queue) {
			left, err = s.sendShares(ctx, t.Queries, by, l, queue, most, targets, r)
		} else if l.UsesLanes(queue) {
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
	return targets[len(rows):], nil
}

// sendPicked does the same for a queue with lanes.
func (s *Store) sendPicked(
	ctx context.Context, q *gen.Queries, by string, l *dispatch.Ledger, queue string, most int, targets []dispatch.Target,
	r *result,
) ([]dispatch.Target, error) {
	p := dispatch.NewPicker(l, queue, most, targets)
	for sources := p.Next(); len(sources) > 0; sources = p.Next() {
		if err := showBest(ctx, q, queue, sources); err != nil {
			return nil, fmt.Errorf("read waiting jobs of queue %s: %w", queue, err)
		}
		p.Looked(sources)
	}
	p.Finish()
	sent, err := s.sendChosen(ctx, q, by, l, queue, p.Chosen, p.Moved, r)
	l.NoteStarts(queue, len(sent))
	return append(p.Left(), p.Chosen.Without(sent)...), err
}

// sendShares is sendBest for a queue in which jobs of several fairness keys wait, or in which a control may hold back
// those of a key.
func (s *Store) sendShares(
	ctx context.Context, q *gen.Queries, by string, l *dispatch.Ledger, queue string, most int, targets []dispatch.Target,
	r *result,
) ([]dispatch.Target, error) {
	inTurn, err := s.sendInTurn(ctx, q, by, l, queue, targets[:min(most, len(targets))], r)
	if err != nil {
		return nil, err
	}
	if most, targets = most-inTurn, targets[inTurn:]; most == 0 || len(targets) == 0 {
		return targets, nil
	}
	p := dispatch.NewSharePicker(l, queue, most, targets)
	for reach, more := p.Next(); more; reach, more = p.Next() {
		rows, err := q.KeysBest(ctx, gen.KeysBestParams{
			QueueName: queue, Lanes: reach.Lanes, Floors: reach.Floors, FromKey: reach.From, Closed: reach.Closed,
			MaxKeys: int32Of(reach.Keys), MaxRows: int32Of(reach.Jobs),
		})
		if err != nil {
			return nil, fmt.Errorf("read the best jobs by fairness key in queue %s: %w", queue, err)
		}
		for _, row := range rows {
			p.Show(dispatch.Candidate{
				JobID: row.JobID, JobType: row.JobType, OwnerID: row.OwnerID, Rank: row.Rank, Lane: row.Lane, Key: row.Key,
			}, int(row.Each))
		}
	}
	chosen := p.Chosen()
	sent, err := s.sendChosen(ctx, q, by, l, queue, chosen, p.Moved(), r)
	if err != nil {
		return nil, err
	}
	p.Finish(sent)
	return append(p.Left(), chosen.Without(sent)...), nil
}

// sendInTurn does the same in one statement if no control makes keys or jobs differ. It returns how many jobs it
// dispatched. If these are fewer than the targets, further jobs may wait all the same.
func (s *Store) sendInTurn(
	ctx context.Context, q *gen.Queries, by string, l *dispatch.Ledger, queue string, targets []dispatch.Target, r *result,
) (int, error) {
	after, some := l.LastTurn(queue)
	if !some {
		return 0, nil
	}
	rows, err := q.KeysDispatch(ctx, gen.KeysDispatchParams{
		QueueName: queue, AfterKey: after, Partitions: dispatch.Partitions(targets), Lease: s.cfg.Lease, ByFunction: by,
	})
	if err != nil {
		return 0, fmt.Errorf("dispatch queue %s in turns: %w", queue, err)
	}
	if len(rows) == 0 {
		return 0, nil
	}
	last, isOnly := rows[0], len(rows) > 1 && len(rows) == len(targets)
	for _, row := range rows {
		l.NoteOut(queue, "", nullable.Value(row.Partition), 1)
		r.sentOut = append(r.sentOut, row.JobID)
		isOnly = isOnly && row.Key == last.Key
		if row.Place > last.Place {
			last = row
		}
	}
	l.NoteTurns(queue, len(rows), last.Key)
	if isOnly {
		l.NoteOnlyKey(queue, last.Key, last.Rank)
	}
	return len(rows), nil
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

// showBest locks the best jobs of each source, and adds them to it.
func showBest(ctx context.Context, q *gen.Queries, queue string, sources []*dispatch.Source) error {
	lanes, byLane := gen.LanesBestParams{QueueName: queue}, map[string]*dispatch.Source{}
	for _, source := range sources {
		if source.Lane != "" {
			byLane[source.Lane] = source
			lanes.Lanes = append(lanes.Lanes, source.Lane)
			lanes.AfterRanks = append(lanes.AfterRanks, source.AfterRank)
			lanes.AfterIDs = append(lanes.AfterIDs, source.AfterID)
			lanes.Mosts = append(lanes.Mosts, int32Of(source.Most))
			continue
		}
		rows, err := q.PlainBest(ctx, gen.PlainBestParams{
			QueueName: queue, AfterRank: source.AfterRank, AfterID: source.AfterID, Most: int32Of(source.Most),
		})
		if err != nil {
			return err
		}
		for _, row := range rows {
			source.Show(dispatch.Candidate(row))
		}
	}
	if len(lanes.Lanes) == 0 {
		return nil
	}
	rows, err := q.LanesBest(ctx, lanes)
	if err != nil {
		return err
	}
	for _, row := range rows {
		byLane[row.Lane].Show(dispatch.Candidate(row))
	}
	return nil
}
