// Package operations serves operations: commands for many jobs.
package operations

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway/audit"
	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/functions/gateway/waiters"
	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/operationstore"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/sealing"
	"github.com/jobweaver/jobweaver/shared/strictjson"
)

// auditDetail is the part of an operation in the audit log.
type auditDetail struct {
	Command string          `json:"command"`
	Filter  *apibody.Filter `json:"filter,omitempty"`
	Jobs    int             `json:"jobs,omitempty"` // the number of jobs on a list
}

// API has the endpoints of operations.
type API struct {
	DB     *apidb.Store
	Store  *operationstore.Store
	Ends   *waiters.Waiters
	Limits *edge.Limits
	Auth   *edge.Authenticator
	Sealer *sealing.Sealer
}

// Create is POST /api/operations.
func (a *API) Create(c *gin.Context) error {
	request, err := edge.ReadAs(c, apibody.MaxOperationBytes, apibody.DecodeOperation)
	if err != nil {
		return err
	}
	if a.Sealer != nil && request.Filter != nil && request.Filter.Payload != "" {
		return strictjson.Problems{{Path: "filter.payload", Message: edge.PayloadsSealed}}.Err("job request")
	}
	key, err := edge.IdempotencyKey(c)
	if err != nil {
		return err
	}
	if err := edge.MergeKey(&request.IdempotencyKey, key); err != nil {
		return err
	}
	asked := operationstore.NewOperation{ID: a.DB.NewID(), Request: request, By: audit.Actor(c), Whose: edge.OwnerOf(c)}
	if asked.RequestHash, err = hashOf(request); err != nil {
		return err
	}
	details, err := json.Marshal(auditDetail{request.Command, request.Filter, len(request.JobIDs)})
	if err != nil {
		return fmt.Errorf("write the audit entry of an operation: %w", err)
	}
	if asked.Audit, err = audit.EntryOf(c, "operation/"+asked.ID.String(), details); err != nil {
		return err
	}
	if asked.Whose.IsEveryone() && request.Filter != nil {
		asked.Audit.SetOwner(request.Filter.OwnerID)
	}
	if request.Command == jobevent.CommandRetry { // with a filter the number of jobs is not known yet
		if err := a.Limits.AllowJobs(c, max(len(request.JobIDs), 1)); err != nil {
			return err
		}
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	op, replayed, err := a.Store.InsertOperation(ctx, asked)
	if err != nil {
		return err
	}
	edge.Locate(c, "/api/operations/"+op.ID.String())
	status := http.StatusAccepted
	if replayed {
		c.Header("Idempotent-Replayed", "true")
		status = http.StatusOK
	}
	return edge.Answer(c, status, newOperation(op))
}

// hashOf returns a hash that is equal for requests with the same meaning, whatever their formatting.
func hashOf(request apibody.Operation) ([]byte, error) {
	request.JobIDs = slices.Clone(request.JobIDs)
	slices.SortFunc(request.JobIDs, func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
	if request.Filter != nil {
		filter := *request.Filter
		filter.Status = slices.Sorted(slices.Values(filter.Status))
		request.Filter = &filter
	}
	canonical, err := json.Marshal(request)
	if err != nil {
		return nil, fmt.Errorf("write operation: %w", err)
	}
	hash := sha256.Sum256(canonical)
	return hash[:], nil
}

// Get is GET /api/operations/{operationId}. With a wait, it holds the response until the operation has ended.
func (a *API) Get(c *gin.Context) error {
	id, err := edge.PathID(c, "operationId", operationstore.ErrNoOperation)
	if err != nil {
		return err
	}
	op, release, err := edge.AwaitEnd(c, a.Auth, func() (operationstore.Operation, error) { return a.operation(c, id) },
		operationstore.Operation.Ended, func(ctx context.Context) { a.Ends.Wait(ctx, id) })
	if err != nil {
		return err
	}
	defer release()
	return edge.Answer(c, http.StatusOK, newOperation(op))
}

func (a *API) operation(c *gin.Context, id uuid.UUID) (operationstore.Operation, error) {
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	return a.Store.Operation(ctx, edge.OwnerOf(c), id)
}

type page struct {
	Operations []operation `json:"operations"`
	NextCursor *string     `json:"nextCursor"`
}

// List is GET /api/operations: pages by key, newest first.
func (a *API) List(c *gin.Context) error {
	q := edge.NewQuery(c)
	before, limit := q.Cursor("cursor"), q.Integer("limit", edge.DefaultLimit, 1, edge.MaxLimit)
	if err := q.Close("cursor", "limit"); err != nil {
		return err
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	ops, more, err := a.Store.ListOperations(ctx, edge.OwnerOf(c), before, limit)
	if err != nil {
		return err
	}
	body := page{Operations: make([]operation, len(ops))}
	for i, op := range ops {
		body.Operations[i] = newOperation(op)
		body.Operations[i].SkippedJobs = nil
	}
	body.NextCursor = edge.NextCursor(more, func() string { return ops[len(ops)-1].ID.String() })
	return edge.Answer(c, http.StatusOK, body)
}

// Abort is POST /api/operations/{operationId}/abort.
func (a *API) Abort(c *gin.Context) error {
	id, err := edge.PathID(c, "operationId", operationstore.ErrNoOperation)
	if err != nil {
		return err
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	op, err := a.Store.AbortOperation(ctx, audit.Entry(c), edge.OwnerOf(c), id)
	if err != nil {
		return err
	}
	if op.Status == operationstore.OperationCompleted {
		return apierror.New(apierror.InvalidStateTransition, "the operation is %s", op.Status)
	}
	return edge.Answer(c, http.StatusAccepted, newOperation(op))
}
