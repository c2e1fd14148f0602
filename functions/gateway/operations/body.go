package operations

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb/operationstore"
	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/jobview"
)

// operation is an operation in a response; lists leave out its jobs.
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
	Progress    client.OperationProgress       `json:"progress"`
	Reasons     []client.RefusalReason         `json:"reasons"`
	SkippedJobs *[]client.SkippedJob           `json:"skippedJobs,omitempty"`
}

func newOperation(op operationstore.Operation) operation {
	shown := operation{
		OperationID: op.ID, Command: op.Command, RunAt: jobview.UTC(op.RunAt), Filter: op.Filter, By: op.By,
		Status: op.Status, CreatedAt: op.CreatedAt.UTC(), UpdatedAt: op.UpdatedAt.UTC(),
		FinishedAt: jobview.UTC(op.FinishedAt),
		Progress: client.OperationProgress{
			Matched: int(op.Matched), Asked: int(op.Asked), Applied: int(op.Applied), Refused: int(op.Refused),
			Skipped: int(op.Skipped), Walked: op.Walked,
		},
		Reasons: []client.RefusalReason{},
	}
	if op.Listed > 0 {
		shown.Jobs = &op.Listed
	}
	for text, jobs := range op.Reasons {
		shown.Reasons = append(shown.Reasons, client.RefusalReason{Reason: text, Jobs: jobs})
	}
	slices.SortFunc(shown.Reasons, func(a, b client.RefusalReason) int {
		return cmp.Or(cmp.Compare(b.Jobs, a.Jobs), cmp.Compare(a.Reason, b.Reason))
	})
	skipped := make([]client.SkippedJob, len(op.Skips))
	for i, skip := range op.Skips {
		skipped[i] = client.SkippedJob{JobID: skip.JobID.String(), Reason: skip.Reason}
	}
	shown.SkippedJobs = &skipped
	return shown
}
