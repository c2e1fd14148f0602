package submit

import (
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway/access"
	"github.com/jobweaver/jobweaver/functions/gateway/aliases"
	"github.com/jobweaver/jobweaver/functions/gateway/audit"
	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// Body is the response to a submit.
type Body struct {
	JobID   uuid.UUID       `json:"jobId"`
	TraceID uuid.UUID       `json:"traceId"`
	Status  jobstate.Status `json:"status"`

	DecidedBy string `json:"decidedBy,omitempty"` // the policy by which the request got a job that existed
}

// NewBody returns the response for a job.
func NewBody(job jobstore.Accepted) Body {
	return Body{JobID: job.JobID, TraceID: job.TraceID, Status: job.Status(), DecidedBy: job.DecidedBy}
}

// Submit is POST /api/jobs. With a wait it holds the response, and shows the job if it ends in that time.
func (a *API) Submit(c *gin.Context) error {
	wait, err := waitOf(c)
	if err != nil {
		return err
	}
	body, err := edge.ReadJSON(c, jobspec.MaxJobBytes)
	if err != nil {
		return err
	}
	by := a.Requester(c)
	if by.key, err = edge.IdempotencyKey(c); err != nil {
		return err
	}
	asked, err := aliases.Decode(c, body, func(body []byte) (jobstore.NewJob, error) { return a.Decode(body, by) })
	if err != nil {
		return err
	}
	asked.Awaited = wait.Duration > 0
	accepted, err := a.Accept(c, audit.Entry(c), []jobstore.NewJob{asked})
	if err != nil {
		return err
	}
	job := accepted[0]
	if err := Refusal(job); err != nil {
		return err
	}
	edge.Locate(c, "/api/jobs/"+job.JobID.String())
	status := AcceptedStatus(c, job)
	if wait.Duration > 0 {
		if a.Jobs.ShowEnded(c, job.JobID, wait) {
			return nil
		}
		status = http.StatusAccepted // a 200 would mean that the job has ended
	}
	return edge.Answer(c, status, NewBody(job))
}

// AcceptedStatus returns the status of the response. A header marks a repeated response.
func AcceptedStatus(c *gin.Context, job jobstore.Accepted) int {
	if job.Replayed {
		c.Header("Idempotent-Replayed", "true")
	}
	if job.Existed() && !job.Merged() {
		return http.StatusOK
	}
	return http.StatusAccepted
}

// Refusal returns why the store did not accept a job; nil: it did.
func Refusal(job jobstore.Accepted) error {
	switch {
	case job.Conflict:
		return edge.OfJob(job.JobID, apierror.New(apierror.IdempotencyConflict,
			"the idempotency key was used before, for a different request"))
	case len(job.Missing) > 0:
		return NoJobs(job.Missing)
	}
	return job.Late
}

// NoJobs refuses a request whose after has no existing job at these indices.
func NoJobs(at []int) error {
	const message = "there is no job with this id"
	e := apierror.New(apierror.InvalidJobRequest, "invalid job request: after[%d]: %s", at[0], message)
	for _, i := range at {
		e.Details = append(e.Details, apierror.Detail{Path: fmt.Sprintf("after[%d]", i), Message: message})
	}
	return e
}

// waitOf is edge.WaitOf for a submit. Only keys with the role read are shown the whole job.
func waitOf(c *gin.Context) (edge.Wait, error) {
	if c.Request.URL.RawQuery == "" && len(c.Request.Header["Prefer"]) == 0 {
		return edge.Wait{}, nil
	}
	q := edge.NewQuery(c)
	wait := edge.WaitOf(c, &q)
	if err := q.Close("wait"); err != nil {
		return edge.Wait{}, err
	}
	if wait.Duration == 0 || access.Of(c.Request.Context()).May(access.Read) {
		return wait, nil
	}
	if wait.Preferred {
		return edge.Wait{}, nil
	}
	return edge.Wait{}, apierror.New(apierror.Forbidden,
		"wait shows the job: it needs the role %s, which the API key or token does not have", access.Read)
}
