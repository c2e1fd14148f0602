package workerstore

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// Worker is a worker's latest heartbeat.
type Worker struct {
	jobevent.Heartbeat
	SeenAt time.Time
	Live   bool // seen within the last 10 s
}

// List returns all workers of the last hour, by their ids. An owner sees only the attempts of its own jobs.
func (s *Store) List(ctx context.Context, owner apidb.Owner) ([]Worker, error) {
	workers, err := s.allWorkers(ctx)
	if err != nil || owner.IsEveryone() {
		return workers, err
	}
	own, err := s.heldBy(ctx, owner, workers)
	if err != nil {
		return nil, apidb.Classify("find whose jobs workers hold", err)
	}
	for i := range workers {
		w := &workers[i]
		w.Free, w.Rate = 0, 0
		w.Attempts = slices.DeleteFunc(w.Attempts, func(held jobevent.HeldAttempt) bool { return !own[held.JobID] })
	}
	return workers, nil
}

// heldBy returns the jobs of an owner that workers hold.
func (s *Store) heldBy(ctx context.Context, owner apidb.Owner, workers []Worker) (map[uuid.UUID]bool, error) {
	var asked []uuid.UUID
	for _, w := range workers {
		for _, held := range w.Attempts {
			asked = append(asked, held.JobID)
		}
	}
	own := map[uuid.UUID]bool{}
	if len(asked) == 0 {
		return own, nil
	}
	ids, err := s.q.JobsOfOwner(ctx, gen.JobsOfOwnerParams{JobIDs: asked, OwnerID: owner.ID()})
	for _, id := range ids {
		own[id] = true
	}
	return own, err
}

func (s *Store) allWorkers(ctx context.Context) ([]Worker, error) {
	rows, err := s.q.WorkersAll(ctx)
	if err != nil {
		return nil, apidb.Classify("list workers", err)
	}
	workers := make([]Worker, len(rows))
	for i, row := range rows {
		workers[i].SeenAt, workers[i].Live = row.SeenAt, row.Live
		if err := json.Unmarshal(row.Beat, &workers[i].Heartbeat); err != nil {
			return nil, fmt.Errorf("read heartbeat of worker %s: %w", row.WorkerID, err)
		}
	}
	return workers, nil
}

// DeleteOld deletes the workers that have been silent for an hour.
func (s *Store) DeleteOld(ctx context.Context) error {
	return apidb.Classify("forget workers", s.q.WorkersForget(ctx))
}
