package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"time"
)

// BatchRequest is a request for a batch: jobs that end together. Other jobs can join it by their BatchID until it is
// closed.
type BatchRequest struct {
	Name           string       `json:"name,omitempty"`
	Jobs           []JobRequest `json:"jobs,omitempty"`       // the first ones, at most 1,000
	Closed         bool         `json:"closed,omitempty"`     // no other jobs can join it
	OnComplete     *JobRequest  `json:"onComplete,omitempty"` // submitted when each of its jobs has completed
	OnFailure      *JobRequest  `json:"onFailure,omitempty"`  // submitted when the batch has ended in another way
	ExpiresAt      time.Time    `json:"expiresAt,omitzero"`   // the instant by which it has to end
	OwnerID        string       `json:"ownerId,omitempty"`    // counts only while authentication is off
	IdempotencyKey string       `json:"idempotencyKey,omitempty"`
}

// BatchSummary stands for the summary of the batch in the payload of OnComplete or OnFailure.
var BatchSummary = map[string]string{"$batch": "summary"}

// The states of a batch, in addition to COMPLETED, FAILED and CANCELLED, which jobs have too.
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
	FollowUpError string           `json:"followUpError"` // why the job was refused
	OnComplete    json.RawMessage  `json:"onComplete"`
	OnFailure     json.RawMessage  `json:"onFailure"`
	Sealed        []string         `json:"sealed"` // members that the gateway cannot show
	IsFlow        bool             `json:"isFlow"`

	IdempotencyKey string `json:"idempotencyKey"`
}

// Batches are the batches: groups of jobs that end when all of them have ended.
type Batches struct{ c *Client }

// Create makes a batch with all of its jobs, or no batch, and returns its id. A request without an IdempotencyKey
// gets a random one, so that a repeated request makes no second batch.
func (b Batches) Create(ctx context.Context, batch BatchRequest) (id string, err error) {
	var made struct {
		BatchID string `json:"batchId"`
	}
	_, err = b.c.json(ctx, submission("/api/batches", batch.IdempotencyKey), batch, &made)
	return made.BatchID, err
}

// Get reads a batch; with wait above zero the answer is held until the batch ends, at most for that time and at most
// for a minute.
func (b Batches) Get(ctx context.Context, id string, wait time.Duration) (*Batch, error) {
	return fetchHeld[Batch](ctx, b.c, place("batches", id), wait)
}

// Wait returns a batch once it has ended, in any state. It keeps waiting during a restart of the gateway.
func (b Batches) Wait(ctx context.Context, id string) (*Batch, error) {
	return waitFor(ctx, b.c, place("batches", id), func(b *Batch) bool { return b.FinishedAt != nil })
}

// BatchFilter selects batches or flows: they must match all fields that are set.
type BatchFilter struct {
	Status  string
	OwnerID string
}

func (f BatchFilter) values() url.Values { return given("status", f.Status, "ownerId", f.OwnerID) }

// List reads all batches that match a filter, newest first, page by page. Those that have not ended have no counts.
// It ends after an error.
func (b Batches) List(ctx context.Context, filter BatchFilter) iter.Seq2[*Batch, error] {
	return list[Batch](ctx, b.c, "/api/batches", "batches", filter.values())
}

// Close closes a batch, so that no more jobs can join it. It may be called again.
func (b Batches) Close(ctx context.Context, id string) error {
	_, err := again[struct{}](ctx, b.c, place("batches", id, "close"))
	return err
}

// Cancel closes a batch and starts an operation that cancels all of its jobs. It returns the operation's id.
func (b Batches) Cancel(ctx context.Context, id string) (operation string, err error) {
	return b.c.operate(ctx, place("batches", id, "cancel"))
}

// Retry starts an operation that runs the failed and cancelled jobs of a batch again. It returns the operation's id.
func (b Batches) Retry(ctx context.Context, id string) (operation string, err error) {
	return b.c.operate(ctx, place("batches", id, "retry"))
}

func (c *Client) operate(ctx context.Context, path string) (string, error) {
	var kept struct {
		OperationID string `json:"operationId"`
	}
	_, err := c.do(ctx, request{method: http.MethodPost, path: path}, &kept)
	return kept.OperationID, err
}
