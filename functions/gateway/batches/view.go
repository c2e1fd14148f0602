package batches

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb/batchstore"
	"github.com/jobweaver/jobweaver/shared/jobview"
)

// stateBody is the response to the creation and the closing of a batch, for which the role submit is enough.
type stateBody struct {
	BatchID uuid.UUID         `json:"batchId"`
	Status  batchstore.Status `json:"status"`
}

type operationBody struct {
	BatchID     uuid.UUID `json:"batchId"`
	OperationID uuid.UUID `json:"operationId"`
}

// batch is a batch in a list.
type batch struct {
	BatchID uuid.UUID `json:"batchId"`
	fields
	ClosedAt *time.Time `json:"closedAt"`
}

// fields are those that batches and flows share. Without counts there is neither a total nor a percentage.
type fields struct {
	Name          *string           `json:"name"`
	OwnerID       *string           `json:"ownerId"`
	Status        batchstore.Status `json:"status"`
	Percent       *int64            `json:"percent"`
	Total         *int64            `json:"total"`
	Counts        batchstore.Counts `json:"counts"`
	CreatedAt     time.Time         `json:"createdAt"`
	ExpiresAt     *time.Time        `json:"expiresAt"`
	ExpiredAt     *time.Time        `json:"expiredAt"`
	FinishedAt    *time.Time        `json:"finishedAt"`
	FollowUpJobID *uuid.UUID        `json:"followUpJobId"`
	FollowUpError *string           `json:"followUpError"`
}

// full is a batch in its own response.
type full struct {
	batch
	followUps

	IsFlow bool `json:"isFlow"`
}

// followUps are the jobs that follow a batch, and its key.
type followUps struct {
	OnComplete json.RawMessage `json:"onComplete"`
	OnFailure  json.RawMessage `json:"onFailure"`

	IdempotencyKey *string `json:"idempotencyKey"`

	Sealed []string `json:"sealed,omitempty"` // members that cannot be shown
}

func newBatch(b batchstore.Batch) batch { return batch{b.ID, newFields(b), jobview.UTC(b.ClosedAt)} }

func newFields(b batchstore.Batch) fields {
	shown := fields{
		Name: jobview.Given(b.Name), OwnerID: jobview.Given(b.OwnerID), Status: b.Status, Counts: b.Counts,
		CreatedAt: b.CreatedAt.UTC(), ExpiresAt: jobview.UTC(b.ExpiresAt),
		ExpiredAt: jobview.UTC(b.ExpiredAt), FinishedAt: jobview.UTC(b.FinishedAt), FollowUpJobID: b.FollowUpID,
		FollowUpError: jobview.Given(b.FollowUpError),
	}
	if b.Counts != nil {
		total, percent := b.Counts.Total(), b.Counts.Percent()
		if b.Finished() {
			percent = 100 // also without jobs
		}
		shown.Total, shown.Percent = &total, &percent
	}
	return shown
}
