package projection

import (
	"context"
	"time"
)

// Rewind makes the next pass due at once.
func (f *Function) Rewind() {
	f.reconcile.began = f.reconcile.began.Add(-every)
	f.reconcile.waiting.since = f.reconcile.waiting.since.Add(-every)
}

// Grow makes all instants in the function's memory older.
func (f *Function) Grow(age time.Duration) {
	f.reconcile.began = f.reconcile.began.Add(-age)
	r := &f.reconcile
	for _, w := range []*walk{&r.jobs, &r.commands, &r.callbacks, &r.controls, &r.inFlight, &r.waiting} {
		w.since, w.until = w.since.Add(-age), w.until.Add(-age)
	}
}

// Expire walks over all old jobs and logs once, without pauses.
func (f *Function) Expire(ctx context.Context, now time.Time) error {
	for {
		if rest, err := f.expiry.piece(ctx, f.store, now); err != nil || rest > 0 {
			return err
		}
	}
}

// Rest makes the next step of the walk over old jobs due.
func (f *Function) Rest() { f.expiry.due = time.Time{} }
