package jobs

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/apidb/logstore"
	"github.com/jobweaver/jobweaver/shared/jobview"
	"github.com/jobweaver/jobweaver/shared/sealing"
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

// opener returns a function that opens the values in a member of a job, and returns null for none. The member is
// entered in job.Sealed if one of them cannot be opened.
func (a *API) opener(
	ctx context.Context, job *jobstore.Job, member string,
) func(at sealing.Place, value []byte) json.RawMessage {
	return func(at sealing.Place, value []byte) json.RawMessage {
		if len(value) == 0 {
			return nil
		}
		text, err := a.Sealer.Open(at, value)
		if err != nil && !slices.Contains(job.Sealed, member) {
			job.Sealed = append(job.Sealed, member)
			a.Sealed.Log(ctx, []string{member})
		}
		return text
	}
}
