package telemetry

import (
	"context"
	"errors"
	"sync"
	"time"
)

// troubleAgain is the interval between log lines about an outage that lasts.
const troubleAgain = time.Minute

// Trouble logs the outages of an operation that is retried: a line when an outage begins, one a minute while it lasts,
// and one when it ends, instead of one for each try.
type Trouble struct {
	What  string
	Quiet time.Duration // an outage ends with the first success at least this long after its last failure

	mu                  sync.Mutex
	since, logged, last time.Time
	tries               int // the failed tries of this outage; 0: no outage
}

// Note records the outcome of a try; fields describe the try. An error with a method LogFields adds fields of its own.
func (t *Trouble) Note(ctx context.Context, err error, fields ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil && t.tries == 0 {
		return
	}
	now := time.Now()
	logger := Logger(ctx).With("what", t.What).With(fields...)
	if more := (interface{ LogFields() []any })(nil); errors.As(err, &more) {
		logger = logger.With(more.LogFields()...)
	}
	switch {
	case err == nil:
		if now.Sub(t.last) < t.Quiet {
			return
		}
		logger.InfoContext(ctx, "works again", "tries", t.tries+1, "after", now.Sub(t.since).String())
		t.tries = 0
		return
	case t.tries == 0:
		t.since, t.logged = now, now
		logger.WarnContext(ctx, "failing; retrying until it works", "error", err)
	case now.Sub(t.logged) >= troubleAgain:
		t.logged = now
		logger.WarnContext(ctx, "still failing", "tries", t.tries+1, "after", now.Sub(t.since).String(), "error", err)
	}
	t.last = now
	t.tries++
}

// Ongoing reports whether there is an outage.
func (t *Trouble) Ongoing() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.tries > 0
}
