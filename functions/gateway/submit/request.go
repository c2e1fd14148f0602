// Package submit turns requests into accepted jobs: single jobs, batches, CloudEvents, and jobs that run again.
package submit

import (
	"crypto/sha256"
	"encoding/json"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway/changes"
	"github.com/jobweaver/jobweaver/functions/gateway/coalesce"
	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/functions/gateway/held"
	"github.com/jobweaver/jobweaver/functions/gateway/jobs"
	"github.com/jobweaver/jobweaver/functions/gateway/jobtypes"
	"github.com/jobweaver/jobweaver/functions/gateway/publishbuffer"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/apidb/waitstore"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/sealing"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// API has the endpoints that submit jobs, and the parts that they share with other endpoints that make jobs.
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
	Held     *held.Releaser
	Waits    *waitstore.Store

	// Singles and Ordered insert the jobs of several requests together. Ordered takes those with an ordering key: while
	// they wait for the lock of a key they delay only each other.
	Singles, Ordered *coalesce.Coalescer
}

// Requester has the parts of a request, outside their bodies, that its jobs take over.
type Requester struct {
	Owner apidb.Owner
	trace uuid.UUID
	check jobtypes.Check
	newID func() uuid.UUID

	sampled bool   // whether the trace is sampled
	key     string // from the header Idempotency-Key; empty: none

	keptFairnessKey string // of the job to run again, which its owner may repeat

	batch      uuid.UUID // that all jobs of the request join; zero: each may name one
	batchOwner string
}

// Join makes all jobs of the request join a batch of an owner.
func (by *Requester) Join(batch uuid.UUID, owner string) { by.batch, by.batchOwner = batch, owner }

// For makes all jobs of the request belong to the owner of what they repeat, which the request has reached.
func (by *Requester) For(owner string) {
	if !by.Owner.IsEveryone() {
		by.Owner = apidb.OwnerOf(owner)
	}
}

// Check checks a job that is made later: its fairness key, and its payload by the schema of its type.
func (by Requester) Check(req *jobspec.Request) error {
	if err := by.belong(req); err != nil {
		return err
	}
	return by.check(req)
}

// Requester reads them from a request.
func (a *API) Requester(c *gin.Context) Requester {
	return Requester{
		Owner: edge.MakerOf(c), trace: edge.TraceID(c), check: a.Payloads.Check(c.Request.Context()),
		newID:   a.DB.NewJobIDs(),
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

// NewJobID returns an id for a job of a request.
func (by Requester) NewJobID() uuid.UUID { return jobevent.JobID(by.newID(), by.sampled) }

// DecodeNamed makes a job of a flow, with the id that its name has among names.
func (a *API) DecodeNamed(
	body []byte, id uuid.UUID, names map[string]uuid.UUID, by Requester,
) (jobstore.NewJob, error) {
	req, err := jobspec.DecodeNamed(body, names)
	if err != nil {
		return jobstore.NewJob{}, err
	}
	return a.makeAs(id, req, by)
}

// InNextRun makes a job of a flow of the request of an old one, in another run of the flow.
func (a *API) InNextRun(id, old uuid.UUID, req jobspec.Request, by Requester) (job jobstore.NewJob, err error) {
	if req.Payload, err = a.Sealer.Open(sealing.OfJob(old, sealing.Payload), req.Payload); err != nil {
		return job, apierror.New(apierror.InvalidStateTransition, "its payload is sealed, and cannot be opened any more")
	}
	if _, err := a.Validate(&req, false, by.check); err != nil {
		return job, err
	}
	job, err = a.newJob(id, req, by)
	job.InFlow = true
	return job, err
}

// make checks a request that has been decoded, and makes a job of it.
func (a *API) make(req jobspec.Request, by Requester) (jobstore.NewJob, error) {
	id := req.JobID
	if id == uuid.Nil {
		id = by.NewJobID()
	}
	return a.makeAs(id, req, by)
}

func (a *API) makeAs(id uuid.UUID, req jobspec.Request, by Requester) (jobstore.NewJob, error) {
	if err := edge.MergeKey(&req.IdempotencyKey, by.key); err != nil {
		return jobstore.NewJob{}, err
	}
	if err := by.belong(&req); err != nil {
		return jobstore.NewJob{}, err
	}
	late, err := a.Validate(&req, req.IdempotencyKey != "", by.check)
	if err != nil {
		return jobstore.NewJob{}, err
	}
	job, err := a.newJob(id, req, by)
	job.Late = late
	return job, err
}

// belong gives the request to the sender's owner, and checks its fairness key.
func (by Requester) belong(req *jobspec.Request) error {
	req.OwnerID = by.Owner.Names(req.OwnerID)
	if by.batch != uuid.Nil {
		if req.BatchID != uuid.Nil {
			return edge.Invalid("batchId", "is that of the batch in which the job stands: leave it out")
		}
		if req.Debounce != nil {
			return edge.Invalid("debounce", "is not for a job of a batch")
		}
		if req.OwnerID != "" && req.OwnerID != by.batchOwner {
			return edge.Invalid("ownerId", "must be that of the batch")
		}
		req.BatchID, req.OwnerID = by.batch, by.batchOwner
	}
	if req.FairnessKey == by.keptFairnessKey {
		return nil
	}
	return edge.CheckFairnessKey(by.Owner, req.FairnessKey)
}

// Validate checks a request. An error that need not refuse a repeated request is returned as late: the request came too
// late, or its payload does not match a worker's schema. Only the store knows whether the request repeats one that was
// valid when it first arrived.
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

func (a *API) newJob(id uuid.UUID, req jobspec.Request, by Requester) (jobstore.NewJob, error) {
	job := jobstore.NewJob{JobID: id, TraceID: by.trace, Request: req.FanOut(), Whose: by.Owner}
	a.Defaults.FillIn(&job.Request)
	job.Request.Payload = a.Sealer.Seal(sealing.OfJob(job.JobID, sealing.Payload), job.Request.Payload)
	if req.Debounce != nil {
		payload := req.Payload
		job.SealFor = func(id uuid.UUID) json.RawMessage {
			return a.Sealer.Seal(sealing.OfJob(id, sealing.Payload), payload)
		}
	}
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
