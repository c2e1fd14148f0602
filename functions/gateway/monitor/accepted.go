package monitor

import (
	"context"
	"time"

	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// countEvery is how often the count of accepted jobs is stored.
const countEvery = 5 * time.Second

// AcceptedCount stores how many jobs this process has accepted, for the statistics.
type AcceptedCount struct {
	store   *jobstore.Store
	trouble telemetry.Trouble
}

// NewAcceptedCount makes the count for a store.
func NewAcceptedCount(store *jobstore.Store) *AcceptedCount {
	return &AcceptedCount{store: store, trouble: telemetry.Trouble{What: "store the count of accepted jobs"}}
}

// Run stores the count until ctx ends, and then the rest.
func (a *AcceptedCount) Run(ctx context.Context) {
	tick := time.NewTicker(countEvery)
	defer tick.Stop()
	for ended := false; !ended; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			ended = true
		}
		err := edge.Within(context.WithoutCancel(ctx), databasePatience, a.store.EnterAccepted)
		a.trouble.Note(ctx, err)
	}
}
