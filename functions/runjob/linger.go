package runjob

import (
	"time"

	"github.com/jobweaver/jobweaver/functions/runjob/pool"
)

// linger decides whether the first outcome of a batch waits for others, so that they share the commits of three
// databases and the events between them. An outcome waits only while others come so often that one is likely to come
// meanwhile, and only if nothing is known to wait for it.
//
// Why: docs/decisions/workers.md#an-outcome-waits-a-moment-for-others
type linger struct {
	most time.Duration // 0: outcomes never wait
	gap  time.Duration // between outcomes, on average over the last ones
	last time.Time     // when the last batch was taken
}

// newLinger returns a linger for a worker at rest. A pull worker waits for each outcome.
func (f *Function) newLinger() linger {
	if f.cfg.Demand != nil {
		return linger{}
	}
	return linger{most: f.cfg.SettleLinger, gap: 4 * f.cfg.SettleLinger}
}

// note notes that a batch of outcomes was taken.
func (l *linger) note(outcomes int, at time.Time) {
	gap := min(at.Sub(l.last)/time.Duration(max(outcomes, 1)), 4*l.most) // some outcomes later a pause is forgotten
	l.gap += (gap - l.gap) / 4
	l.last = at
}

// pays reports whether another outcome is likely to come in time.
func (l *linger) pays() bool { return l.most > 0 && l.gap < l.most }

// prompt reports whether an outcome must not wait: its job has waited for its turn, so others may wait for its end; a
// caller waits until it is settled; or it is only to be published.
func prompt(one pool.Finished) bool {
	return one.Attempt == nil || one.Attempt.Run.Prompt || one.Attempt.Settled.Load() != nil
}
