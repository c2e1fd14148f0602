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
	Progress    progress                       `json:"progress"`
	Reasons     []client.RefusalReason         `json:"reasons"`
	SkippedJobs *[]skippedJob                  `json:"skippedJobs,omitempty"`
}

type progress struct {
	Matched int64 `json:"matched"`
	Asked   int64 `json:"asked"`
	Applied int64 `json:"applied"`
	Refused int64 `json:"refused"`
	Skipped int64 `json:"skipped"`
	Walked  bool  `json:"walked"`
}

type skippedJob struct {
	JobID  uuid.UUID `json:"jobId"`
	Reason string    `json:"reason"`
}

func newOperation(op operationstore.Operation) operation {
	shown := operation{
		OperationID: op.ID, Command: op.Command, RunAt: jobview.UTC(op.RunAt), Filter: op.Filter, By: op.By,
		Status: op.Status, CreatedAt: op.CreatedAt.UTC(), UpdatedAt: op.UpdatedAt.UTC(),
		FinishedAt: jobview.UTC(op.FinishedAt),
		Progress: progress{
			Matched: op.Matched, Asked: op.Asked, Applied: op.Applied, Refused: op.Refused, Skipped: op.Skipped,
			Walked: op.Walked,
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
	skipped := make([]skippedJob, len(op.Skips))
	for i, skip := range op.Skips {
		skipped[i] = skippedJob(skip)
	}
	shown.SkippedJobs = &skipped
	return shown
}
