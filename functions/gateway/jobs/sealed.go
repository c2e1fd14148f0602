package jobs

import (
	"context"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/apidb/logstore"
	"github.com/jobweaver/jobweaver/shared/jobview"
)

// Open opens what is sealed of a job. Members that do not open are named in job.Sealed.
func (a *API) Open(ctx context.Context, job *jobstore.Job) {
	jobview.Open(job, a.Sealer)
	if len(job.Sealed) > 0 {
		a.Sealed.Log(ctx, job.Sealed)
	}
}

// openFull is Open of all that is shown of a job by itself.
func (a *API) openFull(ctx context.Context, job *jobstore.Job, lines []logstore.Line) {
	a.Open(ctx, job)
	jobview.OpenHistory(job, a.Sealer)
	job.Sealed = append(job.Sealed, a.OpenLines(ctx, job.JobID, lines)...)
}

// OpenLines gives the name of what cannot be shown whole.
func (a *API) OpenLines(ctx context.Context, id uuid.UUID, lines []logstore.Line) (sealed []string) {
	if !jobview.OpenLines(a.Sealer, id, lines) {
		sealed = []string{"logs"}
		a.Sealed.Log(ctx, sealed)
	}
	return sealed
}
