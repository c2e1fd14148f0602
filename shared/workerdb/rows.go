package workerdb

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/nullable"
	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/workerdb/internal/gen"
)

// insertParams returns the columns of the orders, in the order in which rows are locked. number is that of the claim.
func insertParams(workerID string, number int64, orders []Order) gen.AttemptInsertManyParams {
	orders = slices.Clone(orders)
	slices.SortStableFunc(orders, func(a, b Order) int { return a.Compare(b.Key) })
	n := len(orders)
	p := gen.AttemptInsertManyParams{
		WorkerID: workerID, Number: number,
		JobIDs: make([]uuid.UUID, n), Attempts: make([]int32, n), TraceIDs: make([]uuid.UUID, n),
		Queues: make([]string, n), TimeoutMss: make([]int32, n), Cancels: make([]bool, n),
	}
	for i, o := range orders {
		p.JobIDs[i], p.Attempts[i], p.TraceIDs[i] = o.JobID, int32(o.Attempt), o.TraceID
		p.Queues[i], p.TimeoutMss[i], p.Cancels[i] = o.Queue, int32(o.TimeoutMs), o.Cancel
		if !o.ExpiresAt.IsZero() {
			if p.ExpiresAts == nil {
				p.ExpiresAts = make([]time.Time, n)
			}
			p.ExpiresAts[i] = o.ExpiresAt
		}
	}
	return p
}

// insertNew inserts orders in the common case: no attempt has a row, none expires and none is cancelled. It returns
// false, and inserts none, in any other case.
func (s *Store) insertNew(ctx context.Context, p gen.AttemptInsertManyParams) (bool, error) {
	if p.ExpiresAts != nil || slices.Contains(p.Cancels, true) {
		return false, nil
	}
	err := s.q.AttemptInsertNew(ctx, gen.AttemptInsertNewParams{
		WorkerID: p.WorkerID, Number: p.Number, JobIDs: p.JobIDs, Attempts: p.Attempts, TraceIDs: p.TraceIDs,
		Queues: p.Queues, TimeoutMss: p.TimeoutMss,
	})
	if pgpool.IsTaken(err) {
		return false, nil
	}
	return err == nil, err
}

// unstarted returns the outcome that AttemptInsertMany has written for a cancelled or expired order.
func unstarted(row gen.AttemptInsertManyRow, traceID uuid.UUID, workerID string) Outcome {
	return Outcome{
		Key: Key{row.JobID, int(row.Attempt)}, TraceID: traceID, WorkerID: workerID, Kind: jobevent.KindCancelled,
		FinishedAt: nullable.Value(row.FinishedAt), ErrorCode: nullable.Value(row.ErrorCode),
		Message: nullable.Value(row.ErrorMessage),
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

// Taken returns those of the attempts that a worker has claimed or settled.
func (s *Store) Taken(ctx context.Context, keys []Key) ([]Key, error) {
	found, err := s.get(ctx, keys)
	return slices.Collect(maps.Keys(found)), err
}
