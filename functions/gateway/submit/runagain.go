package submit

import (
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/jobweaver/jobweaver/functions/gateway/access"
	"github.com/jobweaver/jobweaver/functions/gateway/audit"
	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobspec"
)

// RunAgain is POST /api/jobs/{jobId}/run-again: a new job with the request of an old one, changed by the body.
func (a *API) RunAgain(c *gin.Context) error {
	id, err := edge.JobID(c)
	if err != nil {
		return err
	}
	// A key without the role read could set a callbackUrl, and would get the results of the old payload there.
	if !access.Of(c.Request.Context()).May(access.Read) {
		return apierror.New(apierror.Forbidden,
			"run-again uses what the job has: it needs the role %s, too, which the API key or token does not have", access.Read)
	}
	by := a.Requester(c)
	if by.key, err = edge.IdempotencyKey(c); err != nil {
		return err
	}
	patch, err := readPatch(c)
	if err != nil {
		return err
	}
	old, _, err := a.Jobs.Request(c, id)
	if err != nil {
		return edge.OfJob(id, err)
	}
	if old.ForEach != nil {
		return edge.OfJob(id, apierror.New(apierror.InvalidStateTransition,
			"the job is a fan-out, which runs only in its flow: run a job of an element again, or retry the flow"))
	}
	req, err := patch.Apply(old.Again())
	if err != nil {
		return err
	}
	if old.JobType == jobspec.Alert && req.JobType != jobspec.Alert { // its payload has a URL that may be a secret
		return edge.OfJob(id, apierror.New(apierror.InvalidStateTransition,
			"a job that sends a notice runs again only as one of its type"))
	}
	by.For(old.OwnerID)
	req.RunAgainOf, req.Event, by.keptFairnessKey = id, old.Event, old.FairnessKey
	asked, err := a.make(req, by)
	if err != nil {
		return err
	}
	entry, err := audit.EntryOf(c, "", patch.Public())
	if err != nil {
		return err
	}
	accepted, err := a.Accept(c, entry, []jobstore.NewJob{asked})
	if err != nil {
		return err
	}
	job := accepted[0]
	if err := Refusal(job); err != nil {
		return err
	}
	edge.Locate(c, "/api/jobs/"+job.JobID.String())
	return edge.Answer(c, AcceptedStatus(c, job), NewBody(job))
}

// readPatch reads the changes to a request. Without a body there are none.
func readPatch(c *gin.Context) (jobspec.Patch, error) {
	if c.Request.ContentLength == 0 {
		return jobspec.Patch{}, nil
	}
	body, err := edge.ReadBody(c, jobspec.MaxJobBytes)
	if err != nil || strings.TrimSpace(string(body)) == "" {
		return jobspec.Patch{}, err
	}
	if err := edge.RequireJSON(c); err != nil {
		return jobspec.Patch{}, err
	}
	return jobspec.DecodePatch(body)
}
