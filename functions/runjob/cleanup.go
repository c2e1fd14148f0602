package runjob

import (
	"context"
	"time"

	"github.com/jobweaver/jobweaver/shared/retry"
	"github.com/jobweaver/jobweaver/shared/telemetry"
	"github.com/jobweaver/jobweaver/shared/workerdb"
)

// cleanUp deletes attempts and checkpoints that are past their retention, now and then, until ctx ends.
func (f *Function) cleanUp(ctx context.Context) {
	keep := workerdb.Retention{Attempts: f.cfg.RetainAttempts, Checkpoints: f.cfg.RetainCheckpoints}
	if keep == (workerdb.Retention{}) {
		return
	}
	for retry.Pause(ctx, f.timing.cleanupEvery) {
		n, err := f.store.Cleanup(ctx, keep, func(took time.Duration) bool {
			return retry.Pause(ctx, (cleanupShare-1)*took) // so that it hardly slows claims and settling
		})
		if err != nil && ctx.Err() == nil {
			telemetry.Logger(ctx).WarnContext(ctx, "old attempts not deleted", "workerId", f.id, "deleted", n, "error", err)
		} else if n > 0 {
			telemetry.Logger(ctx).InfoContext(ctx, "old attempts deleted", "workerId", f.id, "attempts", n)
		}
	}
}
