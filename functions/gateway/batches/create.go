package batches

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/jobweaver/jobweaver/functions/gateway/audit"
	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/functions/gateway/submit"
	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb/batchstore"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/apidb/schedulestore"
)

// Create is POST /api/batches. The batch is made with all its jobs, or not at all.
func (a *API) Create(c *gin.Context) error {
	asked, by, err := a.read(c)
	if err != nil {
		return err
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	made, err := a.Store.Known(ctx, asked) // before its expiresAt is looked at, which may have passed since
	if err == nil && !made.Replayed {
		made, err = a.create(c, &asked, by)
	}
	if err != nil {
		return err
	}
	return answerMade(c, "/api/batches/", made, stateBody{BatchID: made.ID, Status: made.Status})
}

func answerMade(c *gin.Context, at string, made batchstore.Created, body any) error {
	edge.Locate(c, at+made.ID.String())
	status := http.StatusCreated
	if made.Replayed {
		c.Header("Idempotent-Replayed", "true")
		status = http.StatusOK
	}
	return edge.Answer(c, status, body)
}

func (a *API) read(c *gin.Context) (asked batchstore.NewBatch, by submit.Requester, err error) {
	return a.readAs(c, func(body []byte) (req apibody.Batch, named []apibody.NamedJob, err error) {
		req, err = apibody.DecodeBatch(body)
		return req, nil, err
	})
}

// readAs reads a request for a batch, or for a flow with its named jobs.
func (a *API) readAs(
	c *gin.Context, decode func(body []byte) (apibody.Batch, []apibody.NamedJob, error),
) (asked batchstore.NewBatch, by submit.Requester, err error) {
	key, err := edge.IdempotencyKey(c)
	if err != nil {
		return asked, by, err
	}
	body, err := edge.ReadJSON(c, apibody.MaxBatchBytes)
	if err != nil {
		return asked, by, err
	}
	asked.ID = a.DB.NewID()
	req := &asked.Request
	var named []apibody.NamedJob
	if *req, named, err = decode(body); err != nil {
		return asked, by, err
	}
	if err := edge.MergeKey(&req.IdempotencyKey, key); err != nil {
		return asked, by, err
	}
	by = a.Submit.Requester(c)
	req.OwnerID = by.Owner.Names(req.OwnerID)
	asked.RequestHash, err = hashOf(*req, named)
	return asked, by, err
}

// create checks the jobs of a request, and stores the batch with them.
func (a *API) create(
	c *gin.Context, asked *batchstore.NewBatch, by submit.Requester,
) (made batchstore.Created, err error) {
	req := &asked.Request
	by.Join(asked.ID, req.OwnerID)
	asked.Jobs = make([]jobstore.NewJob, len(req.Jobs))
	for i, raw := range req.Jobs {
		if asked.Jobs[i], err = a.Submit.Decode(raw, by); err != nil {
			return made, apibody.AtJob(fmt.Sprintf("jobs[%d]", i), err)
		}
	}
	return a.store(c, asked, by, func(i int) string { return fmt.Sprintf("jobs[%d]", i) })
}

// store checks the rest of a request, and stores the batch with its jobs. path names a job in errors.
func (a *API) store(
	c *gin.Context, asked *batchstore.NewBatch, by submit.Requester, path func(job int) string,
) (made batchstore.Created, err error) {
	if err := asked.Request.CheckExpiry(time.Now()); err != nil {
		return made, err
	}
	if err := a.readFollowUps(asked, by); err != nil {
		return made, err
	}
	if err := a.Limits.AllowJobs(c, max(len(asked.Jobs), 1)); err != nil {
		return made, err
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	if made, err = a.Store.Create(edge.WithShare(ctx, c), audit.Entry(c), *asked); err != nil {
		return made, atJob(err, path)
	}
	return made, a.Submit.Publish(ctx, asked.Jobs[:len(made.Jobs)], made.Jobs)
}

// readFollowUps checks the jobs that follow the batch as if it ended now, and seals them.
func (a *API) readFollowUps(asked *batchstore.NewBatch, by submit.Requester) error {
	now := time.Now()
	example := batchstore.Batch{
		ID: asked.ID, OwnerID: asked.Request.OwnerID, Name: asked.Request.Name, Status: batchstore.Completed,
		CreatedAt: now, ClosedAt: &now, FinishedAt: &now, Counts: batchstore.NoJobs(),
	}
	rules := schedulestore.Rules{Rules: a.Submit.Rules, Defaults: a.Submit.Defaults}
	return asked.Request.FollowUps(func(member string, job *json.RawMessage) error {
		req, err := batchstore.FollowUp(*job, &example, rules)
		if err == nil {
			err = by.Check(&req)
		}
		if err == nil {
			*job = batchstore.Seal(a.Submit.Sealer, asked.ID, member, *job)
		}
		return err
	})
}

// hashOf returns a hash that is equal for requests with the same members, whatever the white space between them.
func hashOf(req apibody.Batch, named []apibody.NamedJob) ([]byte, error) {
	req.IdempotencyKey = ""
	hash := sha256.New()
	e := json.NewEncoder(hash)
	err := e.Encode(req)
	if named != nil && err == nil {
		err = e.Encode(slices.SortedFunc(slices.Values(named), func(a, b apibody.NamedJob) int {
			return strings.Compare(a.Name, b.Name)
		}))
	}
	if err != nil {
		return nil, fmt.Errorf("write batch: %w", err)
	}
	return hash.Sum(nil), nil
}

// atJob names the job because of which the store has refused a batch.
func atJob(err error, path func(job int) string) error {
	if missing := (*jobstore.MissingError)(nil); errors.As(err, &missing) {
		return apibody.AtJob(path(missing.Job), submit.NoJobs(missing.At))
	}
	if late := (*jobstore.LateError)(nil); errors.As(err, &late) {
		return apibody.AtJob(path(late.Job), late.Why)
	}
	return err
}
