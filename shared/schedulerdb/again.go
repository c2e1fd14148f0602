package schedulerdb

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/schedulerdb/internal/gen"
)

// again adds to say all that follows from the current state of the jobs that this batch did not
// change: their events were delivered before, and what was said then may be lost.
func again(ctx context.Context, q *gen.Queries, ids []uuid.UUID, changed map[uuid.UUID]bool, say *Say) error {
	var unchanged []uuid.UUID
	for _, id := range ids {
		if !changed[id] {
			unchanged = append(unchanged, id)
		}
	}
	jobs, err := snapshots(ctx, q, unchanged)
	if err != nil || len(jobs) == 0 {
		return err
	}
	orders, err := q.JobsRunOrders(ctx, unchanged)
	if err != nil {
		return fmt.Errorf("read run orders: %w", err)
	}
	for _, order := range orders {
		say.Runs = append(say.Runs, RunOrder(order))
	}
	say.Jobs = append(say.Jobs, jobs...)
	return nil
}

func snapshots(ctx context.Context, q *gen.Queries, ids []uuid.UUID) ([]Snapshot, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	rows, err := q.JobsSnapshot(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("read jobs: %w", err)
	}
	jobs := make([]Snapshot, len(rows))
	for i, row := range rows {
		jobs[i] = Snapshot(row)
	}
	return jobs, nil
}

// notifyDue wakes the clock when nothing is due before the given instant.
func notifyDue(ctx context.Context, q *gen.Queries, earliest time.Time) error {
	next, err := q.NextDue(ctx)
	if err != nil {
		return fmt.Errorf("read next due instant: %w", err)
	}
	if len(next) > 0 && next[0].DueAt.Before(earliest.Truncate(time.Microsecond)) {
		return nil
	}
	if err := q.NotifyDue(ctx); err != nil {
		return fmt.Errorf("wake the clock: %w", err)
	}
	return nil
}

func setOf(ids []uuid.UUID) map[uuid.UUID]bool {
	set := make(map[uuid.UUID]bool, len(ids))
	for _, id := range ids {
		set[id] = true
	}
	return set
}

func jsonOrNull[T any](v *T) json.RawMessage {
	if v == nil {
		return nil
	}
	return mustJSON(v)
}

// mustJSON encodes our own structs, which cannot fail.
func mustJSON(v any) json.RawMessage {
	body, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", v, err))
	}
	return body
}

// byJob sorts a batch so that its rows are locked in the same order as everybody's.
func byJob[T any](items []T, id func(T) uuid.UUID) {
	slices.SortStableFunc(items, func(a, b T) int {
		x, y := id(a), id(b)
		return slices.Compare(x[:], y[:])
	})
}
