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
	queued, err := statesAgain(ctx, q, ids, say, news)
	say.out = append(say.out, queued...)
	return err
}

// statesAgain is again without the orders of the jobs that are out, which it returns.
func statesAgain(
	ctx context.Context, q *gen.Queries, ids []uuid.UUID, say *Say, news *tally,
) (queued []uuid.UUID, err error) {
	changed := make(map[uuid.UUID]bool, len(say.Jobs))
	for _, job := range say.Jobs {
		changed[job.JobID] = true
	}
	unchanged := slices.DeleteFunc(slices.Clone(ids), func(id uuid.UUID) bool { return changed[id] })
	jobs, err := snapshots(ctx, q, unchanged)
	if err != nil {
		return nil, err
	}
	for _, job := range jobs {
		switch status := jobstate.Status(job.Status); {
		case status == jobstate.Pending && job.BlockedBy == nil:
			news.waits(job.Queue, orEmpty(job.Lane), job.Rank) // whoever dispatched may have found it under our lock
		case status == jobstate.Queued:
			queued = append(queued, job.JobID)
		}
	}
	say.Jobs = append(say.Jobs, jobs...)
	return queued, nil
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
