package jobstore

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/nullable"
)

// isUniform reports whether the jobs differ in id and payload only, and cannot conflict with another job.
func isUniform(jobs []NewJob) bool {
	for i := range jobs {
		job := &jobs[i]
		if job.Request.IdempotencyKey != "" || job.EventID != "" || !job.Request.IsPlain() ||
			i > 0 && !sameButPayload(job, &jobs[0]) {
			return false
		}
	}
	return len(jobs) > 0
}

func sameButPayload(job, other *NewJob) bool {
	a, b := &job.Request, &other.Request
	return a.OwnerID == b.OwnerID && a.OwnFairnessKey() == b.OwnFairnessKey() &&
		a.JobType == b.JobType && a.Queue == b.Queue &&
		a.Spec.Equal(&b.Spec) && a.Delay == b.Delay && slices.Equal(a.Tags, b.Tags) &&
		(a.RunAt == b.RunAt || a.RunAt != nil && b.RunAt != nil && a.RunAt.Equal(*b.RunAt))
}

// insertUniform uses one statement without RETURNING for each row: the database adds only the time.
func insertUniform(ctx context.Context, q *gen.Queries, jobs []NewJob) ([]Accepted, error) {
	req := &jobs[0].Request
	p := gen.JobInsertUniformParams{
		JobIDs: make([]uuid.UUID, len(jobs)), TraceIDs: make([]uuid.UUID, len(jobs)),
		Payloads: make([]json.RawMessage, len(jobs)), OwnerID: req.OwnerID, JobType: req.JobType, Queue: req.Queue,
		Spec: req.Spec.Bytes(), Tags: append([]string{}, req.Tags...), RunAt: req.RunAt,
		FairnessKey: nullable.Text(req.OwnFairnessKey()),
	}
	if req.Delay > 0 {
		ms := req.Delay.Milliseconds()
		p.DelayMs = &ms
	}
	for i := range jobs {
		p.JobIDs[i], p.TraceIDs[i], p.Payloads[i] = jobs[i].JobID, jobs[i].TraceID, jobs[i].Request.Payload
	}
	createdAt, err := q.JobInsertUniform(ctx, p)
	if err != nil {
		return nil, err
	}
	return acceptedAt(jobs, createdAt), nil
}

func acceptedAt(jobs []NewJob, createdAt time.Time) []Accepted {
	runAt := jobs[0].Request.RunAt
	if delay := jobs[0].Request.Delay; delay > 0 && runAt == nil {
		at := createdAt.Add(delay)
		runAt = &at
	}
	accepted := make([]Accepted, len(jobs))
	for i := range jobs {
		accepted[i] = Accepted{JobID: jobs[i].JobID, TraceID: jobs[i].TraceID, RunAt: runAt, CreatedAt: createdAt}
	}
	return accepted
}
