package workerdb

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/workerdb/internal/gen"
)

// Checkpoint is what an attempt saves for the next attempt of its job.
type Checkpoint struct {
	Key
	TraceID   uuid.UUID
	TimeoutMs int
	Number    int64 // higher than those of the attempt's earlier saves
	Data      json.RawMessage
}

// SaveCheckpoints saves checkpoints of this worker's open attempts, at most one of each, and returns these attempts. An
// attempt that is missing is over, or another worker's: it has saved nothing.
// Why checkpoints are not in events: docs/decisions/workers.md#checkpoints-lie-in-the-workers-database
func (s *Store) SaveCheckpoints(ctx context.Context, workerID string, all []Checkpoint) (map[Key]bool, error) {
	p, rows := gen.CheckpointSaveManyParams{WorkerID: workerID}, make([]moving, len(all))
	for i, c := range all {
		rows[i] = moving{Outcome: Outcome{Key: c.Key, TraceID: c.TraceID}, timeoutMs: c.TimeoutMs}
		p.JobIDs, p.Attempts = append(p.JobIDs, c.JobID), append(p.Attempts, int32(c.Attempt))
		p.Numbers, p.Datas = append(p.Numbers, c.Number), append(p.Datas, c.Data)
	}
	if _, err := s.move(ctx, workerID, rows); err != nil {
		return nil, err
	}
	saved, err := s.q.CheckpointSaveMany(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("save %d checkpoints: %w", len(all), pgpool.Classify(err))
	}
	open := make(map[Key]bool, len(saved))
	for _, row := range saved {
		open[Key{row.JobID, int(row.Attempt)}] = true
	}
	return open, nil
}

// Checkpoints returns the checkpoints of jobs. A job without one is missing.
func (s *Store) Checkpoints(ctx context.Context, jobIDs []uuid.UUID) (map[uuid.UUID]json.RawMessage, error) {
	rows, err := s.q.CheckpointGetMany(ctx, jobIDs)
	if err != nil {
		return nil, fmt.Errorf("read checkpoints of %d jobs: %w", len(jobIDs), pgpool.Classify(err))
	}
	found := make(map[uuid.UUID]json.RawMessage, len(rows))
	for _, row := range rows {
		found[row.JobID] = row.Data
	}
	return found, nil
}

// DeleteCheckpoints deletes the checkpoints of jobs that have completed.
func (s *Store) DeleteCheckpoints(ctx context.Context, jobIDs []uuid.UUID) error {
	if err := s.q.CheckpointDeleteMany(ctx, jobIDs); err != nil {
		return fmt.Errorf("delete checkpoints of %d jobs: %w", len(jobIDs), pgpool.Classify(err))
	}
	return nil
}
