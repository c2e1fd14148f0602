// Package jobs serves reads of jobs: single jobs, lists, logs, dead jobs and why they failed.
package jobs

import (
	"context"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway/audit"
	"github.com/jobweaver/jobweaver/functions/gateway/changes"
	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/functions/gateway/waiters"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/apidb/logstore"
	"github.com/jobweaver/jobweaver/shared/apidb/statstore"
	"github.com/jobweaver/jobweaver/shared/apidb/waitstore"
	"github.com/jobweaver/jobweaver/shared/sealing"
)

const (
	shownLines = 200 // of a job's log, in the response with the job

	// The approximate limits of log text in one response: for the end of the log that is shown with the job, and for a
	// page of the log.
	shownLogBytes, pageLogBytes = 256 << 10, 1 << 20
)

// API has the endpoints that read jobs.
type API struct {
	Store  *jobstore.Store
	Stats  *statstore.Store
	Logs   *logstore.Store
	Hub    *changes.Hub
	Ends   *waiters.Waiters
	Auth   *edge.Authenticator
	Audit  *audit.Log
	Sealer *sealing.Sealer
	Sealed *edge.SealWarning
	Waits  *waitstore.Store
}

// Get is GET /api/jobs/{jobId}. With a wait, it holds the response until the job has ended.
func (a *API) Get(c *gin.Context) error {
	id, err := edge.JobID(c)
	if err != nil {
		return err
	}
	q := edge.NewQuery(c)
	wait := edge.WaitOf(c, &q)
	if err := q.Close("wait"); err != nil {
		return err
	}
	job, err := a.job(c, id)
	if err != nil {
		return err
	}
	wait.Confirm(c)
	if wait.Duration > 0 && !job.Status.Terminal() {
		job = jobstore.Job{} //nolint:wastedassign // its payload and output need not stay in memory meanwhile
		edge.LoadOf(c).Drop()
		release, err := a.awaitEnd(c, id, wait)
		if err != nil {
			return err
		}
		defer release()
		if job, err = a.job(c, id); err != nil {
			return err
		}
	}
	return a.showJob(c, job, a.Audit.EnterReading)
}

// showJob answers with a job, its history and its log, after the read is recorded in the audit log.
func (a *API) showJob(c *gin.Context, job jobstore.Job, enterReading func(*gin.Context) error) error {
	lines, _, err := a.lines(c, job.JobID, logstore.Filter{MaxBytes: shownLogBytes})
	if err != nil {
		return err
	}
	lines = lines[max(0, len(lines)-shownLines):]
	a.openFull(c.Request.Context(), &job, lines)
	waits, err := a.waits(c, &job)
	if err != nil {
		return err
	}
	steps, err := a.steps(c, &job)
	if err != nil {
		return err
	}
	shown := newFull(job, lines)
	shown.Waits, shown.Steps = waits, steps
	body, err := edge.Encode(c, shown)
	if err != nil {
		return err
	}
	if err := enterReading(c); err != nil {
		return err
	}
	edge.AnswerTagged(c, edge.JobTag(job.Version, body), edge.JSONType, body)
	return nil
}

func (a *API) job(c *gin.Context, id uuid.UUID) (jobstore.Job, error) {
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	job, err := a.Store.Job(ctx, edge.OwnerOf(c), id)
	if err != nil {
		return job, edge.OfJob(id, err)
	}
	return job, nil
}

func (a *API) lines(c *gin.Context, id uuid.UUID, filter logstore.Filter) (
	lines []logstore.Line, next *logstore.Place, err error,
) {
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	return a.Logs.List(ctx, edge.OwnerOf(c), id, filter)
}

// awaitEnd holds a response until a job has ended or the wait is over. The caller calls release.
func (a *API) awaitEnd(c *gin.Context, id uuid.UUID, wait edge.Wait) (release func(), err error) {
	return a.Auth.Hold(c, wait, func(ctx context.Context) {
		defer a.Hub.Enter()()
		a.Ends.Wait(ctx, id)
	})
}

// ShowEnded holds the response to a submit, and shows the job once it has ended. It returns false if the job has not
// ended or cannot be shown: then the job stays accepted, and the caller answers so.
func (a *API) ShowEnded(c *gin.Context, id uuid.UUID, wait edge.Wait) bool {
	release, err := a.awaitEnd(c, id, wait)
	if err != nil {
		return false
	}
	defer release()
	c.Request = c.Request.WithContext(edge.WithShare(c.Request.Context(), c))
	job, err := a.job(c, id)
	if err != nil || !job.Status.Terminal() {
		return false
	}
	enter := func(c *gin.Context) error { return a.Audit.EnterReadingOfJob(c, id) }
	return a.showJob(c, job, enter) == nil
}
