// Package submit turns requests into accepted jobs: single ones, batches, CloudEvents, and jobs run again.
package submit

import (
	"crypto/sha256"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway/changes"
	"github.com/jobweaver/jobweaver/functions/gateway/coalesce"
	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/functions/gateway/jobs"
	"github.com/jobweaver/jobweaver/functions/gateway/jobtypes"
	"github.com/jobweaver/jobweaver/functions/gateway/publishbuffer"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/sealing"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// API is the endpoints that submit jobs, and what endpoints that make jobs in another way share with them.
type API struct {
	DB       *apidb.Store
	Store    *jobstore.Store
	Rules    jobspec.Rules
	Defaults jobspec.TypeDefaults
	Payloads *jobtypes.Payloads
	Jobs     *jobs.API
	Hub      *changes.Hub
	Outgoing *publishbuffer.Buffer
	Limits   *edge.Limits
	Sealer   *sealing.Sealer

	// Singles and Ordered insert the jobs of several requests together. Ordered takes those with an ordering key: while
	// they wait for a key's lock they delay only each other.
	Singles, Ordered *coalesce.Coalescer
}

// Requester is what the jobs of a request take from it besides their own bodies.
type Requester struct {
	Owner apidb.Owner
	trace uuid.UUID
	check jobtypes.Check

	sampled bool   // whether the trace is kept
	key     string // of the header Idempotency-Key; empty: none
}

// Requester reads what jobs need of a request.
func (a *API) Requester(c *gin.Context) Requester {
	return Requester{
		Owner: edge.OwnerOf(c), trace: edge.TraceID(c), check: a.Payloads.Check(c.Request.Context()),
		sampled: telemetry.Keeps(c.Request.Context(), c.GetHeader("Traceparent")),
	}
}

// Decode makes a job of a JobRequest.
func (a *API) Decode(body []byte, by Requester) (jobstore.NewJob, error) {
	req, err := jobspec.Decode(body)
	if err != nil {
		return jobstore.NewJob{}, err
	}
	return a.make(req, by)
}

// make checks a request that has been decoded, and makes a job of it.
func (a *API) make(req jobspec.Request, by Requester) (jobstore.NewJob, error) {
	if err := edge.MergeKey(&req.IdempotencyKey, by.key); err != nil {
		return jobstore.NewJob{}, err
	}
	req.OwnerID = by.Owner.Names(req.OwnerID)
	late, err := a.Validate(&req, req.IdempotencyKey != "", by.check)
	if err != nil {
		return jobstore.NewJob{}, err
	}
	job, err := a.newJob(req, by)
	job.Late = late
	return job, err
}

// Validate puts off the judgement on a request that comes late, or whose payload a worker's schema refuses: where
// it can repeat one that came in time, only the store knows.
func (a *API) Validate(req *jobspec.Request, repeatable bool, check jobtypes.Check) (late, err error) {
	err = req.Validate(a.Rules)
	if err == nil {
		if err = check(req); err == nil || !repeatable {
			return nil, err
		}
		return err, nil
	}
	if repeatable && jobspec.IsLate(err) {
		return err, nil
	}
	return nil, err
}

func (a *API) newJob(req jobspec.Request, by Requester) (jobstore.NewJob, error) {
	job := jobstore.NewJob{JobID: req.JobID, TraceID: by.trace, Request: req, Whose: by.Owner}
	if job.JobID == uuid.Nil {
		job.JobID = a.DB.NewJobID(by.sampled)
	}
	a.Defaults.FillIn(&job.Request)
	job.Request.Payload = a.Sealer.Seal(sealing.OfJob(job.JobID, sealing.Payload), job.Request.Payload)
	if req.IdempotencyKey == "" {
		return job, nil
	}
	canonical, err := jobspec.Canonical(req)
	if err != nil {
		return job, err
	}
	hash := sha256.Sum256(canonical)
	job.RequestHash = hash[:]
	return job, nil
}
