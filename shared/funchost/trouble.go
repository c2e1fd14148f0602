package funchost

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// trouble logs when something that is tried again and again begins to fail and when it works again,
// not each try.
type trouble struct {
	what string

	mu    sync.Mutex
	since time.Time // zero: none
	tries int
}

// note takes a try's outcome.
func (t *trouble) note(ctx context.Context, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case err != nil && t.tries == 0:
		t.since, t.tries = time.Now(), 1
		logger := telemetry.Logger(ctx)
		if p := (*panicError)(nil); errors.As(err, &p) {
			logger = logger.With("stack", string(p.stack))
		}
		logger.WarnContext(ctx, "failing, tried again until it works", "what", t.what, "error", err)
	case err != nil:
		t.tries++
	case t.tries > 0:
		telemetry.Logger(ctx).InfoContext(ctx, "works again", "what", t.what,
			"tries", t.tries+1, "after", time.Since(t.since).String())
		t.tries = 0
	}
}

// ongoing says whether the last try failed.
func (t *trouble) ongoing() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.tries > 0
}
