package jobstore

import (
	"context"
	"errors"
	"slices"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/apierror"
)

// errDeleted refuses a new job with the id of a deleted one, which the scheduler would delete at once.
// Why: docs/decisions/api.md#the-id-of-a-deleted-job-is-refused
var errDeleted error = &apierror.Error{
	Code: apierror.JobDeleted, Message: "the job with this id is deleted: a new job needs another id",
	Details: []apierror.Detail{{Path: "jobId", Message: "is the id of a deleted job"}},
}

// deletedError has the ids of new jobs that are those of deleted jobs.
type deletedError struct {
	LateError // of the first of them
	ids       []uuid.UUID
}

func (e *deletedError) Unwrap() error { return &e.LateError }

// checkNotDeleted returns a *deletedError, which is a *LateError, if new jobs have the ids of deleted jobs. It runs
// after the insert, which waits for a transaction that deletes a job with the same id.
func checkNotDeleted(ctx context.Context, q *gen.Queries, jobs []NewJob, accepted []Accepted) error {
	var ids []uuid.UUID
	for i := range jobs {
		if jobs[i].Request.JobID != uuid.Nil && accepted[i].New() {
			ids = append(ids, jobs[i].JobID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	gone, err := q.JobsDeleted(ctx, ids)
	if err != nil || len(gone) == 0 {
		return err
	}
	first := slices.IndexFunc(jobs, func(job NewJob) bool { return slices.Contains(gone, job.JobID) })
	return &deletedError{LateError: LateError{Job: first, Why: errDeleted}, ids: gone}
}

// refusingDeleted inserts jobs. If some have the ids of deleted jobs, it inserts the others, and these only if they
// repeat a job that exists. It returns the jobs as they were inserted.
func refusingDeleted(
	ctx context.Context, jobs []NewJob, insert func(context.Context, []NewJob) ([]Accepted, error),
) ([]NewJob, []Accepted, error) {
	for {
		accepted, err := insert(ctx, jobs)
		var deleted *deletedError
		if !errors.As(err, &deleted) {
			return jobs, accepted, err
		}
		jobs = slices.Clone(jobs)
		for i := range jobs {
			if slices.Contains(deleted.ids, jobs[i].JobID) {
				jobs[i].Late = errDeleted
			}
		}
	}
}
