package batches

import (
	"context"
	"errors"
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway/audit"
	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/functions/gateway/submit"
	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb/batchstore"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/jobview"
	"github.com/jobweaver/jobweaver/shared/strictjson"
)

// errNoFlow is returned for an id that is not the id of a flow of the owner.
var errNoFlow error = apierror.New(apierror.FlowNotFound, "there is no such flow")

// madeBytes is about what a job takes in the answer to the creation of its flow.
const madeBytes = 128

// CreateFlow is POST /api/flows. The flow is made with all its jobs, or not at all.
// Why a flow is a batch: docs/decisions/groups.md#a-flow-is-a-batch-with-a-graph
func (a *API) CreateFlow(c *gin.Context) error {
	asked, named, by, err := a.readFlow(c)
	if err == nil {
		err = edge.LoadOf(c).Reserve(int64(len(named) * madeBytes))
	}
	if err != nil {
		return err
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	made, err := a.Store.Known(ctx, asked)
	if err == nil && !made.Replayed {
		made, err = a.createFlow(c, &asked, named, by)
	}
	if err != nil {
		return err
	}
	body := madeFlow{FlowID: made.ID, Jobs: make(map[string]uuid.UUID, len(made.Graph))}
	for _, job := range made.Graph {
		body.Jobs[job.Name] = job.JobID
	}
	return answerMade(c, "/api/flows/", made, body)
}

func (a *API) readFlow(c *gin.Context) (
	asked batchstore.NewBatch, named []apibody.NamedJob, by submit.Requester, err error,
) {
	asked, by, err = a.readAs(c, func(body []byte) (apibody.Batch, []apibody.NamedJob, error) {
		flow, err := apibody.DecodeFlow(body)
		named = flow.Named
		return flow.Batch, named, err
	})
	return asked, named, by, err
}

// createFlow checks the jobs of a flow, and stores it with them.
func (a *API) createFlow(
	c *gin.Context, asked *batchstore.NewBatch, named []apibody.NamedJob, by submit.Requester,
) (made batchstore.Created, err error) {
	ids := make(map[string]uuid.UUID, len(named))
	for _, job := range named {
		ids[job.Name] = by.NewJobID()
	}
	by.Join(asked.ID, asked.Request.OwnerID)
	asked.Jobs = make([]jobstore.NewJob, len(named))
	requests := make([]jobspec.Request, len(named))
	for i, job := range named {
		if asked.Jobs[i], err = a.Submit.DecodeNamed(job.Job, ids[job.Name], ids, by); err != nil {
			return made, apibody.AtJob(strictjson.Join("jobs", job.Name), err)
		}
		asked.Jobs[i].InFlow, requests[i] = true, asked.Jobs[i].Request
	}
	if asked.Graph, err = apibody.NewGraph(named, ids, requests); err != nil {
		return made, err
	}
	return a.store(c, asked, by, func(i int) string { return strictjson.Join("jobs", named[i].Name) })
}

// GetFlow is GET /api/flows/{flowId}. With a wait, it holds the response until the flow has ended.
func (a *API) GetFlow(c *gin.Context) error {
	id, err := edge.PathID(c, "flowId", errNoFlow)
	if err != nil {
		return err
	}
	found, release, err := edge.AwaitEnd(c, a.Auth, func() (batchstore.Batch, error) { return a.flow(c, id) },
		func(b batchstore.Batch) bool { return b.Finished() }, func(ctx context.Context) { a.Ends.Wait(ctx, id) })
	if err != nil {
		return err
	}
	defer release()
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	standings, err := a.Store.Standings(edge.WithShare(ctx, c), id)
	if err != nil {
		return err
	}
	body, err := edge.Encode(c, fullFlow{
		newFlow(found), a.followUps(c, &found), found.Run, jobview.List(found.EarlierRuns),
		newGraph(found.Graph, standings),
	})
	if err != nil {
		return err
	}
	if err := a.Audit.EnterReading(c); err != nil {
		return err
	}
	edge.AnswerTagged(c, edge.ContentTag(body), edge.JSONType, body)
	return nil
}

// flow returns a batch that is a flow.
func (a *API) flow(c *gin.Context, id uuid.UUID) (batchstore.Batch, error) {
	found, err := a.batch(c, id)
	if err == nil && found.Graph == nil {
		err = errNoFlow
	}
	return found, ofFlow(err)
}

func ofFlow(err error) error {
	if errors.Is(err, batchstore.ErrNone) {
		return errNoFlow
	}
	return err
}

type flowPage struct {
	Flows      []flow  `json:"flows"`
	NextCursor *string `json:"nextCursor"`
}

// ListFlows is GET /api/flows: pages by key, newest first.
func (a *API) ListFlows(c *gin.Context) error {
	found, next, err := a.page(c, true)
	if err != nil {
		return err
	}
	body := flowPage{Flows: make([]flow, len(found)), NextCursor: next}
	for i, b := range found {
		body.Flows[i] = newFlow(b)
	}
	return edge.Answer(c, http.StatusOK, body)
}

// CancelFlow is POST /api/flows/{flowId}/cancel.
func (a *API) CancelFlow(c *gin.Context) error {
	id, err := edge.PathID(c, "flowId", errNoFlow)
	if err != nil {
		return err
	}
	if _, err := a.flow(c, id); err != nil {
		return err
	}
	edge.LoadOf(c).Drop() // its graph has been read only for that
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	operation, err := a.Store.Cancel(ctx, audit.Entry(c), edge.OwnerOf(c), id, audit.Actor(c))
	if err != nil {
		return ofFlow(err)
	}
	edge.Locate(c, "/api/operations/"+operation.String())
	return edge.Answer(c, http.StatusAccepted, flowOperation{FlowID: id, OperationID: operation})
}

// RetryFlow is POST /api/flows/{flowId}/retry.
func (a *API) RetryFlow(c *gin.Context) error {
	id, err := edge.PathID(c, "flowId", errNoFlow)
	if err != nil {
		return err
	}
	asked, err := readFlowRetry(c)
	if err != nil {
		return err
	}
	if asked.All || asked.From != nil {
		return a.runFlowAgain(c, id, asked)
	}
	if err := a.Limits.AllowJobs(c, 1); err != nil { // as for an operation with a filter
		return err
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	jobs, err := a.Store.RetryFlow(ctx, audit.Entry(c), edge.OwnerOf(c), id)
	if err != nil {
		return ofFlow(err)
	}
	return edge.Answer(c, http.StatusAccepted, flowRetry{FlowID: id, Jobs: jobs})
}

// readFlowRetry reads what is to run again. A request may have no body.
func readFlowRetry(c *gin.Context) (apibody.FlowRetry, error) {
	body, err := edge.ReadBody(c, apibody.MaxFlowRetryBytes)
	if err != nil || len(body) == 0 {
		return apibody.FlowRetry{}, err
	}
	if err := edge.RequireJSON(c); err != nil {
		return apibody.FlowRetry{}, err
	}
	return apibody.DecodeFlowRetry(body)
}

// runFlowAgain begins another run of a flow. Its new jobs count for the rate limit as those of a new flow do.
func (a *API) runFlowAgain(c *gin.Context, id uuid.UUID, asked apibody.FlowRetry) error {
	found, err := a.flow(c, id)
	if err != nil {
		return err
	}
	chosen, err := asked.Chosen(found.Graph)
	if err != nil {
		return err
	}
	if err := a.Limits.AllowJobs(c, len(chosen)); err != nil {
		return err
	}
	by := a.Submit.Requester(c)
	by.For(found.OwnerID)
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	jobs, accepted, err := a.Store.RunFlowAgain(
		edge.WithShare(ctx, c), audit.Entry(c), edge.OwnerOf(c), id, batchstore.Rerun{
			FlowRetry: asked, NewID: by.NewJobID,
			Make: func(id, old uuid.UUID, req jobspec.Request) (jobstore.NewJob, error) {
				return a.Submit.InNextRun(id, old, req, by)
			},
		})
	if err != nil {
		return ofFlow(err)
	}
	if err := a.Submit.Publish(ctx, jobs, accepted); err != nil {
		return err
	}
	return edge.Answer(c, http.StatusAccepted, flowRetry{FlowID: id, Jobs: len(jobs)})
}

// flowRetry is the response to a retry.
type flowRetry struct {
	FlowID uuid.UUID `json:"flowId"`
	Jobs   int       `json:"jobs"` // that have failed or were cancelled, or are new
}

// madeFlow is the response to the creation of a flow.
type madeFlow struct {
	FlowID uuid.UUID            `json:"flowId"`
	Jobs   map[string]uuid.UUID `json:"jobs"`
}

type flowOperation struct {
	FlowID      uuid.UUID `json:"flowId"`
	OperationID uuid.UUID `json:"operationId"`
}

// flow is a flow in a list.
type flow struct {
	FlowID uuid.UUID `json:"flowId"`
	fields
}

func newFlow(of batchstore.Batch) flow { return flow{of.ID, newFields(of)} }

// fullFlow is a flow in its own response.
type fullFlow struct {
	flow
	followUps

	Run         int32                   `json:"run"`
	EarlierRuns []batchstore.EarlierRun `json:"earlierRuns"`
	Jobs        map[string]flowJob      `json:"jobs"`
}

// flowJob is a job in a flow, and what it waits for.
type flowJob struct {
	JobID   uuid.UUID          `json:"jobId"`
	JobType string             `json:"jobType"`
	Status  *jobstate.Status   `json:"status"` // null: the job is deleted
	After   []apibody.FlowEdge `json:"after"`

	ForEach    *apibody.ForEach `json:"forEach,omitempty"`
	Elements   *elements        `json:"elements,omitempty"`
	RunAgainOf *uuid.UUID       `json:"runAgainOf,omitempty"` // the job of an earlier run that it has replaced
}

// elements are the jobs of a fan-out.
type elements struct {
	Total  int32             `json:"total"`
	Counts batchstore.Counts `json:"counts"`
}

func newGraph(jobs []apibody.FlowJob, standings map[uuid.UUID]batchstore.Standing) map[string]flowJob {
	graph := make(map[string]flowJob, len(jobs))
	for _, job := range jobs {
		shown := flowJob{JobID: job.JobID, JobType: job.JobType, After: job.After, ForEach: job.ForEach}
		if is, there := standings[job.JobID]; there {
			shown.Status, shown.RunAgainOf = &is.Status, is.RunAgainOf
			if is.Elements != nil {
				shown.Elements = &elements{*is.Elements, is.Counts}
			}
		}
		graph[job.Name] = shown
	}
	return graph
}
