package projection

import "time"

// Rewind has the next pass begin at once.
func (f *Function) Rewind() {
	f.reconcile.began = f.reconcile.began.Add(-every)
	f.reconcile.waiting.since = f.reconcile.waiting.since.Add(-every)
}

// Grow makes all that the function remembers that much older.
func (f *Function) Grow(age time.Duration) {
	f.reconcile.began = f.reconcile.began.Add(-age)
	for _, w := range []*walk{&f.reconcile.jobs, &f.reconcile.commands, &f.reconcile.inFlight, &f.reconcile.waiting} {
		w.since, w.until = w.since.Add(-age), w.until.Add(-age)
	}
}
