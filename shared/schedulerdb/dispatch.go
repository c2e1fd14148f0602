package schedulerdb

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jobweaver/jobweaver/shared/schedulerdb/internal/gen"
)

// dispatch is the one step that sends attempts out: whoever brings work or makes room ends with it,
// in the same transaction. One lock serialises it, under which no row of jobs is waited for. It is
// held over the commit, so whoever comes next counts what this one sent out and sees what this one
// left waiting.
func (s *Store) dispatch(ctx context.Context, q *gen.Queries, by string) ([]RunOrder, error) {
	if _, err := lockDispatch(ctx, q); err != nil {
		return nil, err
	}
	return s.dispatchLocked(ctx, q, by)
}

// lockDispatch gives the transaction's time.
func lockDispatch(ctx context.Context, q *gen.Queries) (time.Time, error) {
	lock, err := q.DispatchLock(ctx)
	if err != nil {
		return time.Time{}, fmt.Errorf("lock dispatch: %w", err)
	}
	return lock.At, nil
}

func (s *Store) dispatchLocked(ctx context.Context, q *gen.Queries, by string) ([]RunOrder, error) {
	waiting, err := q.QueuesPending(ctx)
	if err != nil {
		return nil, fmt.Errorf("find waiting queues: %w", err)
	}
	if len(waiting) == 0 {
		return nil, nil
	}
	r, err := measureRoom(ctx, q)
	if err != nil {
		return nil, err
	}
	return s.sendOut(ctx, q, by, r, waiting)
}

// sendOut fills the room from the waiting queues, in a random order: none goes first for ever.
func (s *Store) sendOut(ctx context.Context, q *gen.Queries, by string, r *room, waiting []string) ([]RunOrder, error) {
	rand.Shuffle(len(waiting), func(i, j int) { waiting[i], waiting[j] = waiting[j], waiting[i] })
	var orders []RunOrder
	for _, queue := range waiting {
		places := r.take(queue, dispatchMost)
		if len(places) == 0 {
			continue
		}
		rows, err := q.JobsDispatch(ctx, gen.JobsDispatchParams{
			QueueName: queue, Partitions: partitionsOf(places), Lease: s.cfg.Lease, ByFunction: by,
		})
		if err != nil {
			return nil, fmt.Errorf("dispatch queue %s: %w", queue, err)
		}
		r.giveBack(queue, places[len(rows):])
		orders = append(orders, ordersOf(rows)...)
	}
	return orders, nil
}

func measureRoom(ctx context.Context, q *gen.Queries) (*room, error) {
	live, err := q.WorkersLive(ctx, silentAfter)
	if err != nil {
		return nil, fmt.Errorf("list workers: %w", err)
	}
	out, err := q.InFlight(ctx)
	if err != nil {
		return nil, fmt.Errorf("count attempts in flight: %w", err)
	}
	return newRoom(live, out)
}
