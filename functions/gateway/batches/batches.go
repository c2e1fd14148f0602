// Package batches serves batches: jobs that end together, and the jobs that follow them.
package batches

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway/audit"
	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/functions/gateway/submit"
	"github.com/jobweaver/jobweaver/functions/gateway/waiters"
	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/batchstore"
	"github.com/jobweaver/jobweaver/shared/jobview"
)

// API has the endpoints of batches.
type API struct {
	DB     *apidb.Store
	Store  *batchstore.Store
	Submit *submit.API // its rules hold for all jobs
	Ends   *waiters.Waiters
	Limits *edge.Limits
	Auth   *edge.Authenticator
	Audit  *audit.Log
	Sealed *edge.SealWarning
}

// Get is GET /api/batches/{batchId}. With a wait, it holds the response until the batch has ended.
func (a *API) Get(c *gin.Context) error {
	id, err := batchID(c)
	if err != nil {
		return err
	}
	found, release, err := edge.AwaitEnd(c, a.Auth, func() (batchstore.Batch, error) { return a.batch(c, id) },
		func(b batchstore.Batch) bool { return b.Finished() }, func(ctx context.Context) { a.Ends.Wait(ctx, id) })
	if err != nil {
		return err
	}
	defer release()
	return a.Audit.Show(c, full{newBatch(found), a.followUps(c, &found), found.Graph != nil})
}

// followUps opens the jobs that follow a batch.
func (a *API) followUps(c *gin.Context, b *batchstore.Batch) followUps {
	sealed := b.OpenFollowUps(a.Submit.Sealer)
	if len(sealed) > 0 {
		a.Sealed.Log(c.Request.Context(), sealed)
	}
	return followUps{b.OnComplete, b.OnFailure, jobview.Given(b.IdempotencyKey), sealed}
}

func batchID(c *gin.Context) (uuid.UUID, error) { return edge.PathID(c, "batchId", batchstore.ErrNone) }

func (a *API) batch(c *gin.Context, id uuid.UUID) (batchstore.Batch, error) {
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	return a.Store.Get(edge.WithShare(ctx, c), edge.OwnerOf(c), id)
}

type page struct {
	Batches    []batch `json:"batches"`
	NextCursor *string `json:"nextCursor"`
}

// List is GET /api/batches: pages by key, newest first.
func (a *API) List(c *gin.Context) error {
	found, next, err := a.page(c, false)
	if err != nil {
		return err
	}
	body := page{Batches: make([]batch, len(found)), NextCursor: next}
	for i, b := range found {
		body.Batches[i] = newBatch(b)
	}
	return edge.Answer(c, http.StatusOK, body)
}

// page reads a page of flows, or of other batches.
func (a *API) page(c *gin.Context, flows bool) (found []batchstore.Batch, next *string, err error) {
	q := edge.NewQuery(c)
	filter := batchstore.Filter{
		Flows:  flows,
		Status: batchstore.Status(q.Checked("status", checkStatus)), OwnerID: q.Checked("ownerId", apibody.CheckOwner),
		Before: q.Cursor("cursor"), Limit: q.Integer("limit", edge.DefaultLimit, 1, edge.MaxLimit),
	}
	if err := q.Close("status", "ownerId", "cursor", "limit"); err != nil {
		return nil, nil, err
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	found, more, err := a.Store.List(ctx, edge.OwnerOf(c), filter)
	return found, edge.NextCursor(more, func() string { return found[len(found)-1].ID.String() }), err
}

func checkStatus(text string) error {
	if !slices.Contains(batchstore.Statuses(), batchstore.Status(text)) {
		return edge.Invalid("status", fmt.Sprintf("must be one of %v, not %.40q", batchstore.Statuses(), text))
	}
	return nil
}

// Close is POST /api/batches/{batchId}/close.
func (a *API) Close(c *gin.Context) error {
	id, err := batchID(c)
	if err != nil {
		return err
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	status, err := a.Store.Close(ctx, audit.Entry(c), edge.OwnerOf(c), id)
	if err != nil {
		return err
	}
	return edge.Answer(c, http.StatusOK, stateBody{BatchID: id, Status: status})
}

// Cancel is POST /api/batches/{batchId}/cancel.
func (a *API) Cancel(c *gin.Context) error { return a.operate(c, a.Store.Cancel) }

// Retry is POST /api/batches/{batchId}/retry.
func (a *API) Retry(c *gin.Context) error {
	if err := a.Limits.AllowJobs(c, 1); err != nil { // as for an operation with a filter
		return err
	}
	return a.operate(c, a.Store.Retry)
}

func (a *API) operate(
	c *gin.Context,
	store func(context.Context, *apidb.Audit, apidb.Owner, uuid.UUID, string) (uuid.UUID, error),
) error {
	id, err := batchID(c)
	if err != nil {
		return err
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	operation, err := store(ctx, audit.Entry(c), edge.OwnerOf(c), id, audit.Actor(c))
	if err != nil {
		return err
	}
	edge.Locate(c, "/api/operations/"+operation.String())
	return edge.Answer(c, http.StatusAccepted, operationBody{BatchID: id, OperationID: operation})
}
