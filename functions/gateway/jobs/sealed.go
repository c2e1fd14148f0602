package jobs

import (
	"context"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/apidb/logstore"
	"github.com/jobweaver/jobweaver/shared/jobview"
)

// Open opens the sealed members of a job. job.Sealed lists those that cannot be opened.
func (a *API) Open(ctx context.Context, job *jobstore.Job) {
	jobview.Open(job, a.Sealer)
	if len(job.Sealed) > 0 {
		a.Sealed.Log(ctx, job.Sealed)
	}
}

// openFull opens everything that the response with a single job shows.
func (a *API) openFull(ctx context.Context, job *jobstore.Job, lines []logstore.Line) {
	a.Open(ctx, job)
	jobview.OpenHistory(job, a.Sealer)
	job.Sealed = append(job.Sealed, a.OpenLines(ctx, job.JobID, lines)...)
}

// OpenLines opens log lines, and returns the names of members that cannot be shown whole.
func (a *API) OpenLines(ctx context.Context, id uuid.UUID, lines []logstore.Line) (sealed []string) {
	if !jobview.OpenLines(a.Sealer, id, lines) {
		sealed = []string{"logs"}
		a.Sealed.Log(ctx, sealed)
	}
	return sealed
}
