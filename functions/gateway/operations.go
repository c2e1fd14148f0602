package gateway

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway/access"
	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apidb/operationstore"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/jobview"
)

// operation is one as it is shown; in a list without its jobs.
type operation struct {
	OperationID uuid.UUID                      `json:"operationId"`
	Command     string                         `json:"command"`
	RunAt       *time.Time                     `json:"runAt"`
	Filter      json.RawMessage                `json:"filter"`
	Jobs        *int                           `json:"jobs"`
	By          string                         `json:"by"`
	Status      operationstore.OperationStatus `json:"status"`
	CreatedAt   time.Time                      `json:"createdAt"`
	UpdatedAt   time.Time                      `json:"updatedAt"`
	FinishedAt  *time.Time                     `json:"finishedAt"`
	Progress    operationProgress              `json:"progress"`
	Reasons     []operationReason              `json:"reasons"`
	SkippedJobs *[]skippedJob                  `json:"skippedJobs,omitempty"`
}

type operationProgress struct {
	Matched int64 `json:"matched"`
	Asked   int64 `json:"asked"`
	Applied int64 `json:"applied"`
	Refused int64 `json:"refused"`
	Skipped int64 `json:"skipped"`
	Walked  bool  `json:"walked"`
}

type operationReason struct {
	Reason string `json:"reason"`
	Jobs   int64  `json:"jobs"`
}

type skippedJob struct {
	JobID  uuid.UUID `json:"jobId"`
	Reason string    `json:"reason"`
}

// operationDetail is what the audit log has of an operation.
type operationDetail struct {
	Command string          `json:"command"`
	Filter  *jobspec.Filter `json:"filter,omitempty"`
	Jobs    int             `json:"jobs,omitempty"` // of a list
}

// operate is POST /api/operations.
func (f *Function) operate(c *gin.Context) error {
	body, err := edge.ReadJSON(c, jobspec.MaxOperationBytes)
	if err != nil {
		return err
	}
	request, err := jobspec.DecodeOperation(body)
	if err != nil {
		return err
	}
	key, err := edge.IdempotencyKey(c)
	if err != nil {
		return err
	}
	if err := edge.MergeKey(&request.IdempotencyKey, key); err != nil {
		return err
	}
	asked := operationstore.NewOperation{ID: f.store.NewID(), Request: request, By: by(c), Whose: edge.OwnerOf(c)}
	if asked.RequestHash, err = hashOf(request); err != nil {
		return err
	}
	said := operationDetail{request.Command, request.Filter, len(request.JobIDs)}
	if err := detail(c, "operation/"+asked.ID.String(), said); err != nil {
		return err
	}
	if request.Command == jobevent.CommandRetry { // of a filter nobody knows yet how many there are
		if err := f.limits.AllowJobs(c, max(len(request.JobIDs), 1)); err != nil {
			return err
		}
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	op, replayed, err := f.store.operations.InsertOperation(ctx, asked)
	if err != nil {
		return err
	}
	c.Header("Location", "/api/operations/"+op.ID.String())
	status := http.StatusAccepted
	if replayed {
		c.Header("Idempotent-Replayed", "true")
		status = http.StatusOK
	}
	c.JSON(status, newOperation(op))
	return nil
}

// hashOf is the same for requests that ask for the same, whatever they look like.
func hashOf(request jobspec.Operation) ([]byte, error) {
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

// getOperation is GET /api/operations/{operationId}; with a wait it holds the answer until the operation has ended.
func (f *Function) getOperation(c *gin.Context) error {
	id, err := operationID(c)
	if err != nil {
		return err
	}
	q := edge.Query{Values: c.Request.URL.Query()}
	wait := waitingOf(c, &q)
	if err := q.Close("wait"); err != nil {
		return err
	}
	op, err := f.operation(c, id)
	if err != nil {
		return err
	}
	wait.applied(c)
	if wait.Duration > 0 && !op.Ended() {
		release, err := f.limits.HoldAnswer(c)
		if err != nil {
			return err
		}
		defer release()
		ctx, cancel := context.WithTimeout(c.Request.Context(), wait.Duration)
		f.done.wait(ctx, id)
		cancel()
		if err := f.still(c, access.Read); err != nil {
			return err
		}
		if op, err = f.operation(c, id); err != nil {
			return err
		}
	}
	c.JSON(http.StatusOK, newOperation(op))
	return nil
}

func (f *Function) operation(c *gin.Context, id uuid.UUID) (operationstore.Operation, error) {
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	return f.store.operations.Operation(ctx, edge.OwnerOf(c), id)
}

type operationPage struct {
	Operations []operation `json:"operations"`
	NextCursor *string     `json:"nextCursor"`
}

// listOperations is GET /api/operations: pages by key, newest first.
func (f *Function) listOperations(c *gin.Context) error {
	q := edge.Query{Values: c.Request.URL.Query()}
	before, limit := q.Cursor("cursor"), q.Integer("limit", defaultLimit, 1, maxLimit)
	if err := q.Close("cursor", "limit"); err != nil {
		return err
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	ops, more, err := f.store.operations.ListOperations(ctx, edge.OwnerOf(c), before, limit)
	if err != nil {
		return err
	}
	body := operationPage{Operations: make([]operation, len(ops))}
	for i, op := range ops {
		body.Operations[i] = newOperation(op)
		body.Operations[i].SkippedJobs = nil
	}
	if more {
		cursor := ops[len(ops)-1].ID.String()
		body.NextCursor = &cursor
	}
	c.JSON(http.StatusOK, body)
	return nil
}

// abortOperation is POST /api/operations/{operationId}/abort.
func (f *Function) abortOperation(c *gin.Context) error {
	id, err := operationID(c)
	if err != nil {
		return err
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	op, err := f.store.operations.AbortOperation(ctx, edge.OwnerOf(c), id)
	if err != nil {
		return err
	}
	if op.Status == operationstore.OperationCompleted {
		return apierror.New(apierror.InvalidStateTransition, "the operation is %s", op.Status)
	}
	c.JSON(http.StatusAccepted, newOperation(op))
	return nil
}

// operationID is the path's; one that is no UUID names no operation.
func operationID(c *gin.Context) (uuid.UUID, error) {
	id, ok := edge.ParseID(c.Param("operationId"))
	if !ok {
		return id, operationstore.ErrNoOperation
	}
	return id, nil
}

func newOperation(op operationstore.Operation) operation {
	shown := operation{
		OperationID: op.ID, Command: op.Command, RunAt: jobview.UTC(op.RunAt), Filter: op.Filter, By: op.By,
		Status: op.Status, CreatedAt: op.CreatedAt.UTC(), UpdatedAt: op.UpdatedAt.UTC(),
		FinishedAt: jobview.UTC(op.FinishedAt),
		Progress: operationProgress{
			Matched: op.Matched, Asked: op.Asked, Applied: op.Applied, Refused: op.Refused, Skipped: op.Skipped,
			Walked: op.Walked,
		},
		Reasons: []operationReason{},
	}
	if op.Listed > 0 {
		shown.Jobs = &op.Listed
	}
	for reason, jobs := range op.Reasons {
		shown.Reasons = append(shown.Reasons, operationReason{Reason: reason, Jobs: jobs})
	}
	slices.SortFunc(shown.Reasons, func(a, b operationReason) int {
		return cmp.Or(cmp.Compare(b.Jobs, a.Jobs), cmp.Compare(a.Reason, b.Reason))
	})
	skipped := make([]skippedJob, len(op.Skips))
	for i, skip := range op.Skips {
		skipped[i] = skippedJob(skip)
	}
	shown.SkippedJobs = &skipped
	return shown
}
