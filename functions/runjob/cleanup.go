package runjob

import (
	"context"
	"log/slog"
	"time"
)

// cleanUp deletes attempts that are older than they are kept, now and then, until ctx ends.
func (f *Function) cleanUp(ctx context.Context) {
	if f.cfg.RetainAttempts == 0 {
		return
	}
	for sleep(ctx, f.timing.cleanupEvery) {
		n, err := f.store.Cleanup(ctx, f.cfg.RetainAttempts, func(took time.Duration) bool {
			return sleep(ctx, (cleanupShare-1)*took) // what claims and settles is to notice little of it
		})
		if err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "old attempts not deleted", "workerId", f.id, "deleted", n, "error", err)
		} else if n > 0 {
			slog.InfoContext(ctx, "old attempts deleted", "workerId", f.id, "attempts", n)
		}
	}
}

// sleep says whether ctx lives on after a while.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
