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
	open := make(map[Key]bool, len(all))
	if err := s.saveCheckpoints(ctx, workerID, all, open); err != nil || len(open) == len(all) {
		return open, err
	}
	var rest []Checkpoint
	var rows []moving
	for _, c := range all {
		if !open[c.Key] {
			rest = append(rest, c)
			rows = append(rows, moving{Outcome: Outcome{Key: c.Key, TraceID: c.TraceID}, timeoutMs: c.TimeoutMs})
		}
	}
	// A heartbeat may have moved them meanwhile, so they are saved again whatever this call moves.
	if _, err := s.move(ctx, workerID, rows); err != nil {
		return open, err
	}
	return open, s.saveCheckpoints(ctx, workerID, rest, open)
}

// saveCheckpoints saves checkpoints of open attempts that have rows, and notes these.
func (s *Store) saveCheckpoints(ctx context.Context, workerID string, all []Checkpoint, open map[Key]bool) error {
	p := gen.CheckpointSaveManyParams{WorkerID: workerID}
	for _, c := range all {
		p.JobIDs, p.Attempts = append(p.JobIDs, c.JobID), append(p.Attempts, int32(c.Attempt))
		p.Numbers, p.Datas = append(p.Numbers, c.Number), append(p.Datas, c.Data)
	}
	rows, err := s.q.CheckpointSaveMany(ctx, p)
	if err != nil {
		return fmt.Errorf("save %d checkpoints: %w", len(all), pgpool.Classify(err))
	}
	for _, row := range rows {
		open[Key{row.JobID, int(row.Attempt)}] = true
	}
	return nil
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
