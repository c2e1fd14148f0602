package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// BatchRequest asks for a batch: jobs that end together. Other jobs join it by their BatchID, until it is closed.
type BatchRequest struct {
	Name           string       `json:"name,omitempty"`
	Jobs           []JobRequest `json:"jobs,omitempty"`       // the first ones, at most 1,000
	Closed         bool         `json:"closed,omitempty"`     // it takes no other jobs
	OnComplete     *JobRequest  `json:"onComplete,omitempty"` // submitted when each of its jobs has completed
	OnFailure      *JobRequest  `json:"onFailure,omitempty"`  // submitted when it has ended in another way
	ExpiresAt      time.Time    `json:"expiresAt,omitzero"`   // by then it has to end
	OwnerID        string       `json:"ownerId,omitempty"`    // counts only while authentication is off
	IdempotencyKey string       `json:"idempotencyKey,omitempty"`
}

// BatchSummary is replaced by the summary of the batch in a payload of OnComplete or OnFailure.
var BatchSummary = map[string]string{"$batch": "summary"}

// The states of a batch beside those of its end that it shares with jobs: COMPLETED, FAILED and CANCELLED.
const (
	BatchOpen    = "OPEN"
	BatchRunning = "RUNNING"
	BatchExpired = "EXPIRED"
)

// Batch is a batch as the API shows it.
type Batch struct {
	BatchID       string           `json:"batchId"`
	Name          string           `json:"name"`
	OwnerID       string           `json:"ownerId"`
	Status        string           `json:"status"`
	Percent       int              `json:"percent"` // of its jobs that have ended
	Total         int64            `json:"total"`
	Counts        map[string]int64 `json:"counts"` // jobs by state
	CreatedAt     time.Time        `json:"createdAt"`
	ClosedAt      *time.Time       `json:"closedAt"`
	ExpiresAt     *time.Time       `json:"expiresAt"`
	ExpiredAt     *time.Time       `json:"expiredAt"`
	FinishedAt    *time.Time       `json:"finishedAt"`
	FollowUpJobID string           `json:"followUpJobId"` // OnComplete or OnFailure
	FollowUpError string           `json:"followUpError"` // why it was refused
	OnComplete    json.RawMessage  `json:"onComplete"`
	OnFailure     json.RawMessage  `json:"onFailure"`
	Sealed        []string         `json:"sealed"` // members that the gateway cannot show
}

// CreateBatch makes a batch with all of its jobs, or none, and returns its id. Without an IdempotencyKey the request
// has one of its own, so that repeating it makes no second batch.
func (c *Client) CreateBatch(ctx context.Context, batch BatchRequest) (id string, err error) {
	var made struct {
		BatchID string `json:"batchId"`
	}
	_, err = c.json(ctx, submission("/api/batches", batch.IdempotencyKey), batch, &made)
	return made.BatchID, err
}

func batchPath(id string, more string) string { return "/api/batches/" + url.PathEscape(id) + more }

// CloseBatch has a batch take no more jobs. It may be called again.
func (c *Client) CloseBatch(ctx context.Context, id string) error {
	_, err := c.do(ctx, request{method: http.MethodPost, path: batchPath(id, "/close"), repeatable: true}, nil)
	return err
}

// Batch reads a batch; with wait above zero the answer is held until the batch ends, at most that long and a minute.
func (c *Client) Batch(ctx context.Context, id string, wait time.Duration) (*Batch, error) {
	path := batchPath(id, "")
	if wait > 0 {
		path += fmt.Sprintf("?wait=%dms", min(max(wait, time.Millisecond), time.Minute).Milliseconds())
	}
	var batch Batch
	_, err := c.do(ctx, request{method: http.MethodGet, path: path}, &batch)
	return &batch, err
}

// CancelBatch closes a batch and has all of its jobs cancelled, by an operation, whose id it returns.
func (c *Client) CancelBatch(ctx context.Context, id string) (operation string, err error) {
	return c.operateBatch(ctx, batchPath(id, "/cancel"))
}

// RetryBatch has the failed and cancelled jobs of a batch run again, by an operation, whose id it returns.
func (c *Client) RetryBatch(ctx context.Context, id string) (operation string, err error) {
	return c.operateBatch(ctx, batchPath(id, "/retry"))
}

func (c *Client) operateBatch(ctx context.Context, path string) (string, error) {
	var kept struct {
		OperationID string `json:"operationId"`
	}
	_, err := c.do(ctx, request{method: http.MethodPost, path: path}, &kept)
	return kept.OperationID, err
}
