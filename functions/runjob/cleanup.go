package runjob

import (
	"context"
	"time"

	"github.com/jobweaver/jobweaver/shared/retry"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// cleanUp deletes attempts that are past their retention, now and then, until ctx ends.
func (f *Function) cleanUp(ctx context.Context) {
	if f.cfg.RetainAttempts == 0 {
		return
	}
	for retry.Pause(ctx, f.timing.cleanupEvery) {
		n, err := f.store.Cleanup(ctx, f.cfg.RetainAttempts, func(took time.Duration) bool {
			return retry.Pause(ctx, (cleanupShare-1)*took) // so that it hardly slows claims and settling
		})
		if err != nil && ctx.Err() == nil {
			telemetry.Logger(ctx).WarnContext(ctx, "old attempts not deleted", "workerId", f.id, "deleted", n, "error", err)
		} else if n > 0 {
			telemetry.Logger(ctx).InfoContext(ctx, "old attempts deleted", "workerId", f.id, "attempts", n)
		}
	}
}
