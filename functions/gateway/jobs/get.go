// Package jobs serves reads of jobs: one, lists, logs and dead jobs.
package jobs

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway/audit"
	"github.com/jobweaver/jobweaver/functions/gateway/changes"
	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/functions/gateway/waiters"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/apidb/logstore"
	"github.com/jobweaver/jobweaver/shared/sealing"
)

const (
	shownLines = 200 // of a job's log, beside the job

	// What a log has in one answer, about: the last of it beside the job, and a page of it by itself.
	shownLogBytes, pageLogBytes = 256 << 10, 1 << 20
)

// API is the endpoints that read jobs.
type API struct {
	Store  *jobstore.Store
	Logs   *logstore.Store
	Hub    *changes.Hub
	Ends   *waiters.Waiters
	Auth   *edge.Authenticator
	Audit  *audit.Log
	Sealer *sealing.Sealer
	Sealed *edge.SealWarning
}

// Get is GET /api/jobs/{jobId}; with a wait it holds the answer until the job has ended.
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

// showJob answers with a job, its history and its log, after the reading is entered in the audit log.
func (a *API) showJob(c *gin.Context, job jobstore.Job, enterReading func(*gin.Context) error) error {
	lines, _, err := a.lines(c, job.JobID, logstore.Filter{MaxBytes: shownLogBytes})
	if err != nil {
		return err
	}
	lines = lines[max(0, len(lines)-shownLines):]
	a.openFull(c.Request.Context(), &job, lines)
	body, err := json.Marshal(newFull(job, lines))
	if err != nil {
		return fmt.Errorf("write job: %w", err)
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
	if err == nil {
		err = edge.LoadOf(c).Take(c, int64(size(&job)))
	}
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
	if lines, next, err = a.Logs.List(ctx, edge.OwnerOf(c), id, filter); err != nil {
		return nil, nil, err
	}
	return lines, next, edge.LoadOf(c).Take(c, edge.SizeOf(lines, func(l *logstore.Line) int { return len(l.Text) }))
}

func size(job *jobstore.Job) int { return len(job.Payload) + len(job.Snapshot.Output) }

// awaitEnd holds an answer until a job has ended or the wait is over. The caller releases it.
func (a *API) awaitEnd(c *gin.Context, id uuid.UUID, wait edge.Wait) (release func(), err error) {
	return a.Auth.Hold(c, wait, func(ctx context.Context) {
		defer a.Hub.Enter()()
		a.Ends.Wait(ctx, id)
	})
}

// ShowEnded holds the answer to a request that submitted a job, and shows the job once it has ended. It returns false
// if the job has not ended or cannot be shown: it stays accepted, and the answer is that.
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
