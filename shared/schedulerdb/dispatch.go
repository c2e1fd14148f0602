package schedulerdb

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/jobweaver/jobweaver/shared/schedulerdb/internal/gen"
)

// dispatch is the one step that sends attempts out: whoever brings work or makes room ends with it,
// in the same transaction, and tells it what he has done. One lock serialises it, under which no row of
// jobs is waited for. It is held over the commit, so whoever comes next knows what this one sent out and
// sees what this one left waiting.
func (s *Store) dispatch(ctx context.Context, q *gen.Queries, by string, news tally, say *Say) error {
	l, err := s.lockDispatch(ctx, q)
	if err != nil {
		return err
	}
	if err := l.enter(ctx, q, news); err != nil {
		return err
	}
	return s.dispatchLocked(ctx, q, by, l, say)
}

// dispatchLocked releases what waited for others, sends out what there is room for, and keeps the ledger.
func (s *Store) dispatchLocked(ctx context.Context, q *gen.Queries, by string, l *ledger, say *Say) error {
	ended, err := s.release(ctx, q, by, l)
	if err != nil {
		return err
	}
	say.Jobs = append(say.Jobs, ended...)
	if waiting := l.waiting(); len(waiting) > 0 {
		r, err := measureRoom(ctx, q, l)
		if err != nil {
			return err
		}
		if err := s.sendOut(ctx, q, by, r, l, waiting, say); err != nil {
			return err
		}
	}
	say.moves = l.moves
	return l.save(ctx, q)
}

// sendOut fills the room from the waiting queues, in a random order: none goes first for ever.
func (s *Store) sendOut(
	ctx context.Context, q *gen.Queries, by string, r *room, l *ledger, waiting []string, say *Say,
) error {
	rand.Shuffle(len(waiting), func(i, j int) { waiting[i], waiting[j] = waiting[j], waiting[i] })
	for _, queue := range waiting {
		places := r.take(queue, min(dispatchMost, l.roomOfQueue(queue)))
		if len(places) == 0 {
			continue
		}
		rows, err := s.sendOutOf(ctx, q, by, l, queue, places)
		if err != nil {
			return err
		}
		r.giveBack(queue, places[len(rows):])
		for _, row := range rows {
			say.out = append(say.out, row.JobID)
		}
	}
	return nil
}

// sendOutOf sends the best of a queue to those places.
func (s *Store) sendOutOf(
	ctx context.Context, q *gen.Queries, by string, l *ledger, queue string, places []place,
) ([]gen.JobsDispatchRow, error) {
	if l.controls.byJob || len(l.lanes[queue]) > 0 {
		return s.sendOutControlled(ctx, q, by, l, queue, places)
	}
	rows, err := q.JobsDispatch(ctx, gen.JobsDispatchParams{
		QueueName: queue, Floor: l.floors[queue], Partitions: partitionsOf(places), Lease: s.cfg.Lease, ByFunction: by,
	})
	if err != nil {
		return nil, fmt.Errorf("dispatch queue %s: %w", queue, err)
	}
	l.took(queue, rows, len(places))
	return rows, nil
}

func measureRoom(ctx context.Context, q *gen.Queries, l *ledger) (*room, error) {
	live, err := q.WorkersLive(ctx, silentAfter)
	if err != nil {
		return nil, fmt.Errorf("list workers: %w", err)
	}
	return newRoom(live, l.out)
}
