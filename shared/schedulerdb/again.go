package schedulerdb

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/internal/gen"
)

// again adds to say all that follows from the current state of those jobs of a batch that it did not
// change: their events were delivered before, and what was said then may be lost.
func again(ctx context.Context, q *gen.Queries, ids []uuid.UUID, say *Say, news *tally) error {
	return sayAgain(ctx, q, ids, false, say, news)
}

// sayAgain is again. With lapsedOnly an order whose lease runs is left out: the watchdog publishes it again when that
// is over. Reconcile publishes job.created again for as long as the API has not heard of the job, and behind a slow
// broker each of these would be one more copy of the order (knative A1).
func sayAgain(ctx context.Context, q *gen.Queries, ids []uuid.UUID, lapsedOnly bool, say *Say, news *tally) error {
	changed := make(map[uuid.UUID]bool, len(say.Jobs))
	for _, job := range say.Jobs {
		changed[job.JobID] = true
	}
	unchanged := slices.DeleteFunc(slices.Clone(ids), func(id uuid.UUID) bool { return changed[id] })
	jobs, err := snapshots(ctx, q, unchanged)
	if err != nil || len(jobs) == 0 {
		return err
	}
	var queued []uuid.UUID
	for _, job := range jobs {
		switch status := jobstate.Status(job.Status); {
		case status == jobstate.Pending && job.BlockedBy == nil:
			news.waits(job.Queue, orEmpty(job.Lane), job.Rank) // whoever dispatched may have found it under our lock
		case status == jobstate.Queued:
			queued = append(queued, job.JobID)
		}
	}
	if lapsedOnly && len(queued) > 0 {
		if queued, err = q.JobsLapsed(ctx, queued); err != nil {
			return fmt.Errorf("look for lapsed leases: %w", err)
		}
	}
	say.out = append(say.out, queued...)
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
	return snapshotsOf(rows), nil
}

// mustJSON encodes our own structs, which cannot fail.
func mustJSON(v any) json.RawMessage {
	body, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", v, err))
	}
	return body
}
