package workerdb

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/workerdb/internal/gen"
)

// insertParams are the orders in the order in which rows are locked.
func insertParams(workerID string, orders []Order) gen.AttemptInsertManyParams {
	orders = slices.Clone(orders)
	slices.SortStableFunc(orders, func(a, b Order) int { return a.Compare(b.Key) })
	p := gen.AttemptInsertManyParams{WorkerID: workerID}
	for _, o := range orders {
		p.JobIDs = append(p.JobIDs, o.JobID)
		p.Attempts = append(p.Attempts, int32(o.Attempt))
		p.TraceIDs = append(p.TraceIDs, o.TraceID)
		p.Queues = append(p.Queues, o.Queue)
		p.TimeoutMss = append(p.TimeoutMss, int32(o.TimeoutMs))
		p.Cancels = append(p.Cancels, o.Cancel)
	}
	return p
}

// cancelledUnstarted is what AttemptInsertMany writes for a cancel.
func cancelledUnstarted(key Key, traceID uuid.UUID, workerID string, at time.Time) Outcome {
	return Outcome{
		Key: key, TraceID: traceID, WorkerID: workerID, Kind: jobevent.KindCancelled, FinishedAt: at,
		ErrorCode: string(apierror.Cancelled), Message: "cancelled before it started",
	}
}

func (s *Store) get(ctx context.Context, keys []Key) (map[Key]gen.ExecutionAttempt, error) {
	jobIDs, attempts := columns(keys)
	rows, err := s.q.AttemptGetMany(ctx, gen.AttemptGetManyParams{JobIDs: jobIDs, Attempts: attempts})
	if err != nil {
		return nil, fmt.Errorf("read %d attempts: %w", len(keys), pgpool.Classify(err))
	}
	found := make(map[Key]gen.ExecutionAttempt, len(rows))
	for _, row := range rows {
		found[keyOf(row)] = row
	}
	return found, nil
}

func (s *Store) wantCancel(ctx context.Context, keys []Key) error {
	if len(keys) == 0 {
		return nil
	}
	jobIDs, attempts := columns(keys)
	err := s.q.AttemptWantCancelMany(ctx, gen.AttemptWantCancelManyParams{JobIDs: jobIDs, Attempts: attempts})
	if err != nil {
		return fmt.Errorf("mark %d attempts for cancel: %w", len(keys), pgpool.Classify(err))
	}
	return nil
}
