package workerstore

import (
	"cmp"
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
	SeenAt   time.Time
	Live     bool // seen within the last 10 s
	Drain    bool // it was ordered to drain; its heartbeat follows
	Answered bool // the heartbeat follows that order, or a later one
}

// SeenBy removes what the pull workers of other owners ask for: their job types and slots.
func (w *Worker) SeenBy(owner apidb.Owner) {
	if owner.IsEveryone() || w.Demands == nil {
		return
	}
	w.Demands = slices.DeleteFunc(slices.Clone(w.Demands), func(d jobevent.Demand) bool {
		return !d.Everyone && d.OwnerID != owner.ID()
	})
	asked := map[string]bool{}
	w.Slots = 0
	for _, d := range w.Demands {
		w.Slots += d.Slots
		for _, name := range d.JobTypes {
			asked[name] = true
		}
	}
	w.JobTypes = slices.DeleteFunc(slices.Clone(w.JobTypes), func(t jobevent.JobType) bool { return !asked[t.Name] })
}

// Draining reports whether the worker gets no attempts until it is resumed.
func (w *Worker) Draining() bool { return w.Drain || w.Heartbeat.Draining }

// Drained reports whether a draining worker has no attempt left.
func (w *Worker) Drained() bool { return w.Answered && w.Heartbeat.Drained }

// HeldJob describes a job that a worker holds.
type HeldJob struct {
	JobType string
	OwnerID string // empty: it has no owner
	Tags    []string
}

// ListFor returns all workers of the last hour, by their ids, and the jobs that they hold. An owner sees only the
// attempts of its own jobs.
func (s *Store) ListFor(ctx context.Context, owner apidb.Owner) ([]Worker, map[uuid.UUID]HeldJob, error) {
	workers, err := s.List(ctx)
	if err != nil {
		return nil, nil, err
	}
	held, err := s.heldBy(ctx, owner, workers)
	if err != nil {
		return nil, nil, apidb.Classify("find the jobs that workers hold", err)
	}
	if owner.IsEveryone() {
		return workers, held, nil
	}
	for i := range workers {
		w := &workers[i]
		w.Free, w.Rate = 0, 0
		w.Attempts = slices.DeleteFunc(w.Attempts, func(a jobevent.ListedAttempt) bool {
			_, isOwn := held[a.JobID]
			return !isOwn
		})
	}
	return workers, held, nil
}

// heldBy returns the jobs of an owner that workers hold.
func (s *Store) heldBy(ctx context.Context, owner apidb.Owner, workers []Worker) (map[uuid.UUID]HeldJob, error) {
	var asked []uuid.UUID
	for _, w := range workers {
		for _, held := range w.Attempts {
			asked = append(asked, held.JobID)
		}
	}
	held := map[uuid.UUID]HeldJob{}
	if len(asked) == 0 {
		return held, nil
	}
	rows, err := s.q.JobsHeld(ctx, gen.JobsHeldParams{
		JobIDs: asked, Everyone: owner.IsEveryone(), OwnerID: owner.ID(),
	})
	for _, row := range rows {
		held[row.JobID] = HeldJob{JobType: row.JobType, OwnerID: row.OwnerID, Tags: row.Tags}
	}
	return held, err
}

// List returns all workers of the last hour, by their ids.
func (s *Store) List(ctx context.Context) ([]Worker, error) {
	rows, err := s.q.WorkersAll(ctx)
	if err != nil {
		return nil, apidb.Classify("list workers", err)
	}
	workers := make([]Worker, len(rows))
	for i, row := range rows {
		workers[i].SeenAt, workers[i].Live = row.SeenAt, row.Live
		workers[i].Drain, workers[i].Answered = row.Draining, row.Answered
		if err := json.Unmarshal(row.Beat, &workers[i].Heartbeat); err != nil {
			return nil, fmt.Errorf("read heartbeat of worker %s: %w", row.WorkerID, err)
		}
	}
	return workers, nil
}

// IsKnown reports whether a worker has sent a heartbeat within the last hour, and not left.
func (s *Store) IsKnown(ctx context.Context, workerID string) (bool, error) {
	known, err := s.q.WorkerIsKnown(ctx, workerID)
	return known, apidb.Classify("find worker", err)
}

// DeleteOld deletes the workers that have been silent for an hour, and the drains of workers that are gone.
func (s *Store) DeleteOld(ctx context.Context) error {
	return apidb.Classify("forget workers", cmp.Or(s.q.WorkersForget(ctx), s.q.DrainsForget(ctx)))
}
