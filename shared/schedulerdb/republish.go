package schedulerdb

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/dispatch"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/nullable"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/emit"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/internal/gen"
)

// republish adds the events that follow from the current state of those jobs that the batch did not change. Their
// events were delivered before, and the events that were published then may be lost.
func republish(ctx context.Context, q *gen.Queries, ids []uuid.UUID, r *result, delta *dispatch.Delta) error {
	queued, err := republishStates(ctx, q, ids, r, delta)
	r.sentOut = append(r.sentOut, queued...)
	return err
}

// republishStates is republish without the run orders of the queued jobs, which it returns.
func republishStates(
	ctx context.Context, q *gen.Queries, ids []uuid.UUID, r *result, delta *dispatch.Delta,
) (queued []uuid.UUID, err error) {
	changed := make(map[uuid.UUID]bool, len(r.Jobs))
	for _, job := range r.Jobs {
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
			// Another transaction may have dispatched and skipped the job, because we had it locked.
			delta.NoteWaiting(job.Queue, nullable.Value(job.Lane), job.FairnessKey, job.Rank)
		case status == jobstate.Queued:
			queued = append(queued, job.JobID)
		}
	}
	r.Jobs = append(r.Jobs, jobs...)
	return queued, nil
}

func snapshots(ctx context.Context, q *gen.Queries, ids []uuid.UUID) ([]emit.Snapshot, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	// A job only moves out of a cohort: so it is looked for there first, or it could be missed in both places.
	together, err := members(ctx, q, ids)
	if err != nil {
		return nil, err
	}
	inCohort := make(map[uuid.UUID]bool, len(together))
	jobs := make([]emit.Snapshot, len(together), len(ids))
	for i, row := range together {
		jobs[i], inCohort[row.JobID] = memberSnapshot(row), true
	}
	rows, err := q.JobsSnapshot(ctx, slices.DeleteFunc(slices.Clone(ids), func(id uuid.UUID) bool { return inCohort[id] }))
	if err != nil {
		return nil, fmt.Errorf("read jobs: %w", err)
	}
	return append(jobs, snapshotsOf(rows)...), nil
}

// mustJSON encodes our own structs, which cannot fail.
func mustJSON(v any) json.RawMessage {
	body, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", v, err))
	}
	return body
}
