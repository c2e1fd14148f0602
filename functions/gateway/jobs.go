package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway/access"
	"github.com/jobweaver/jobweaver/functions/gateway/coalesce"
	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/apievent"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// Without it each id is a system call: a seventh of what a job of a batch costs here.
func init() { uuid.EnableRandPool() }

type acceptedBody struct {
	JobID   uuid.UUID       `json:"jobId"`
	TraceID uuid.UUID       `json:"traceId"`
	Status  jobstate.Status `json:"status"`
}

// submit is POST /api/jobs; with a wait it holds the answer, and shows the job if it ends in that time.
func (f *Function) submit(c *gin.Context) error {
	wait, err := submitWaiting(c)
	if err != nil {
		return err
	}
	body, err := edge.ReadJSON(c, jobspec.MaxJobBytes)
	if err != nil {
		return err
	}
	by := f.asker(c)
	if by.key, err = edge.IdempotencyKey(c); err != nil {
		return err
	}
	asked, err := f.decode(ofAlias(c, body), by)
	if err != nil {
		return err
	}
	accepted, err := f.accept(c, []jobstore.NewJob{asked})
	if err != nil {
		return err
	}
	job := accepted[0]
	if err := refusal(job); err != nil {
		return err
	}
	c.Header("Location", "/api/jobs/"+job.JobID.String())
	status := acceptedStatus(c, job)
	if wait.Duration > 0 {
		if f.showEnded(c, job.JobID, wait) {
			return nil
		}
		status = http.StatusAccepted // 200 means that it has ended
	}
	c.JSON(status, acceptedBody{JobID: job.JobID, TraceID: job.TraceID, Status: job.Status()})
	return nil
}

// acceptedStatus also says in a header that an answer was given before.
func acceptedStatus(c *gin.Context, job jobstore.Accepted) int {
	if job.Replayed {
		c.Header("Idempotent-Replayed", "true")
		return http.StatusOK
	}
	return http.StatusAccepted
}

// refusal is why the store did not accept a job; nil: it did.
func refusal(job jobstore.Accepted) error {
	switch {
	case job.Conflict:
		return edge.OfJob(job.JobID, apierror.New(apierror.IdempotencyConflict,
			"the idempotency key was used before, for a job that asked for something else"))
	case len(job.Missing) > 0:
		return noJobs(job.Missing)
	}
	return job.Late
}

// noJobs: what stands at these places of after is no job.
func noJobs(at []int) error {
	const message = "there is no job with this id"
	e := apierror.New(apierror.InvalidJobRequest, "invalid job request: after[%d]: %s", at[0], message)
	for _, i := range at {
		e.Details = append(e.Details, apierror.Detail{Path: fmt.Sprintf("after[%d]", i), Message: message})
	}
	return e
}

// asker is who asks for jobs with a request.
type asker struct {
	whose apidb.Owner
	trace uuid.UUID
	judge judge

	sampled bool   // whether the trace is kept
	key     string // of the header Idempotency-Key; empty: none
}

func (f *Function) asker(c *gin.Context) asker {
	return asker{
		whose: edge.OwnerOf(c), trace: edge.TraceID(c), judge: f.payloads.judge(c.Request.Context()),
		sampled: telemetry.Keeps(c.Request.Context(), c.GetHeader("Traceparent")),
	}
}

func (f *Function) decode(body []byte, by asker) (jobstore.NewJob, error) {
	req, err := jobspec.Decode(body)
	if err != nil {
		return jobstore.NewJob{}, err
	}
	return f.asked(req, by)
}

// asked checks a request that has been decoded, and makes a job of it.
func (f *Function) asked(req jobspec.Request, by asker) (jobstore.NewJob, error) {
	if err := edge.MergeKey(&req.IdempotencyKey, by.key); err != nil {
		return jobstore.NewJob{}, err
	}
	req.OwnerID = by.whose.Names(req.OwnerID)
	late, err := f.validate(&req, req.IdempotencyKey != "", by.judge)
	if err != nil {
		return jobstore.NewJob{}, err
	}
	job, err := f.newJob(req, by)
	job.Late = late
	return job, err
}

// validate puts off the judgement on a request that comes late, or whose payload a worker's schema refuses: where
// it can repeat one that came in time, only the store knows.
func (f *Function) validate(req *jobspec.Request, repeatable bool, judge judge) (late, err error) {
	err = req.Validate(f.rules)
	if err == nil {
		if err = judge(req); err == nil || !repeatable {
			return nil, err
		}
		return err, nil
	}
	if repeatable && jobspec.IsLate(err) {
		return err, nil
	}
	return nil, err
}

func (f *Function) newJob(req jobspec.Request, by asker) (jobstore.NewJob, error) {
	job := jobstore.NewJob{JobID: req.JobID, TraceID: by.trace, Request: req, Whose: by.whose}
	if job.JobID == uuid.Nil {
		job.JobID = f.store.NewJobID(by.sampled)
	}
	f.defaults.FillIn(&job.Request)
	f.sealJob(&job)
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

type batchBody struct {
	Results []batchResult `json:"results"`
}

type batchResult struct {
	Status int             `json:"status"`
	JobID  *uuid.UUID      `json:"jobId,omitempty"`
	Error  *edge.ErrorBody `json:"error,omitempty"`
}

// submitBatch is POST /api/jobs/batch: the good jobs are accepted, the bad ones are not.
func (f *Function) submitBatch(c *gin.Context) error {
	if c.GetHeader(edge.IdempotencyKeyHeader) != "" {
		return edge.BadKeyHeader("cannot be that of many jobs: give each its idempotencyKey")
	}
	body, err := edge.ReadJSON(c, jobspec.MaxBatchBytes)
	if err != nil {
		return err
	}
	raws, err := jobspec.DecodeBatch(body)
	if err != nil {
		return err
	}
	results := make([]batchResult, len(raws))
	refuse := func(i int, err error) {
		body := edge.NewErrorBody(c, err)
		results[i] = batchResult{Status: body.Status, Error: &body}
	}
	jobs, ordinals := make([]jobstore.NewJob, 0, len(raws)), make([]int, 0, len(raws))
	by := f.asker(c)
	for i, raw := range raws {
		job, err := f.decode(raw, by)
		if err != nil {
			refuse(i, err)
			continue
		}
		jobs, ordinals = append(jobs, job), append(ordinals, i)
	}
	accepted, err := f.accept(c, jobs)
	if err != nil {
		return err
	}
	for at := range accepted {
		job := &accepted[at]
		refused := refusal(*job)
		switch i := ordinals[at]; {
		case refused != nil:
			refuse(i, refused)
		case job.Replayed:
			results[i] = batchResult{Status: http.StatusOK, JobID: &job.JobID}
		default:
			results[i] = batchResult{Status: http.StatusAccepted, JobID: &job.JobID}
		}
	}
	answer, err := batchBody{Results: results}.json()
	if err != nil {
		return err
	}
	c.Data(http.StatusOK, jsonType, answer)
	return nil
}

const jsonType = "application/json; charset=utf-8"

// json is the body as json.Marshal writes it, in a fifth of its time.
func (b batchBody) json() ([]byte, error) {
	const room = len(`{"status":202,"jobId":"00000000-0000-0000-0000-000000000000"},`)
	out := append(make([]byte, 0, (len(b.Results)+1)*room), `{"results":[`...)
	for i, result := range b.Results {
		if i > 0 {
			out = append(out, ',')
		}
		out = strconv.AppendInt(append(out, `{"status":`...), int64(result.Status), 10)
		if result.JobID != nil {
			out = append(append(append(out, `,"jobId":"`...), result.JobID.String()...), '"')
		}
		if result.Error != nil {
			refusal, err := json.Marshal(result.Error)
			if err != nil {
				return nil, fmt.Errorf("write refusal of job %d: %w", i, err)
			}
			out = append(append(out, `,"error":`...), refusal...)
		}
		out = append(out, '}')
	}
	return append(out, "]}"...), nil
}

// accept commits jobs, and hands the events of new ones to the publish buffer.
func (f *Function) accept(c *gin.Context, jobs []jobstore.NewJob) ([]jobstore.Accepted, error) {
	if len(jobs) == 0 {
		return nil, nil
	}
	if err := f.limits.AllowJobs(c, len(jobs)); err != nil {
		return nil, err
	}
	answerFor(c, jobs)
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	var accepted []jobstore.Accepted
	var err error
	if coalescer := f.coalescerFor(jobs); coalescer != nil {
		accepted = make([]jobstore.Accepted, 1)
		accepted[0], err = coalescer.Add(ctx, jobs[0])
	} else {
		accepted, err = f.store.jobs.InsertJobs(shared(ctx, c), jobs)
	}
	if err != nil {
		return nil, err
	}
	return accepted, f.tell(ctx, jobs, accepted)
}

// shared has a request take connections of its owner's share.
func shared(ctx context.Context, c *gin.Context) context.Context {
	if access.Of(ctx).Everyone {
		return ctx
	}
	return apidb.WithCaller(ctx, edge.CallerOf(c))
}

// coalescerFor is with whom a single job goes; nil: alone. One with a key waits for another's, and would have
// its company wait too. Submits of one ordering key wait for each other anyway: together they wait once.
func (f *Function) coalescerFor(jobs []jobstore.NewJob) *coalesce.Coalescer {
	if len(jobs) > 1 {
		return nil
	}
	switch req := &jobs[0].Request; {
	case req.OrderingKey != "" && len(req.After) == 0:
		return f.ordered
	case req.IdempotencyKey == "" && req.IsPlain():
		return f.singles
	}
	return nil
}

func (f *Function) tell(ctx context.Context, jobs []jobstore.NewJob, accepted []jobstore.Accepted) error {
	events := make([]jobevent.Item, 0, len(jobs))
	watched := f.hub.isWatched()
	for i := range accepted {
		if !accepted[i].New() {
			continue
		}
		if watched {
			f.hub.accept(apidb.ChangeStatus, accepted[i].JobID)
		}
		e, err := apievent.Created(accepted[i].Created(jobs[i]))
		if err != nil {
			return err
		}
		if jobs[i].TraceParent != "" {
			telemetry.SetAsked(ctx, &e, jobs[i].TraceParent)
		} else {
			telemetry.SetHere(ctx, &e, jobevent.JobSpanID(accepted[i].JobID))
		}
		events = append(events, e)
	}
	f.outgoing.Add(slices.Clip(events))
	return nil
}
