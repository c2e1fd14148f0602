package runjob

import (
	"context"
	"errors"

	"github.com/jobweaver/jobweaver/shared/batching"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/retry"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// troubles are the operations that the worker retries until they succeed.
type troubles struct{ claim, settle, cancel, publish, save telemetry.Trouble }

func newTroubles() *troubles {
	return &troubles{
		claim: telemetry.Trouble{What: "claim attempts"}, settle: telemetry.Trouble{What: "settle attempts"},
		cancel: telemetry.Trouble{What: "cancel attempts"}, publish: telemetry.Trouble{What: "publish events"},
		save: telemetry.Trouble{What: "save checkpoints"},
	}
}

func (t *troubles) ongoing() bool {
	return t.claim.Ongoing() || t.settle.Ongoing() || t.cancel.Ongoing() || t.publish.Ongoing() ||
		t.save.Ongoing()
}

// untilDone calls do until it succeeds, can never succeed (jobevent.ErrInvalid), or ctx ends. It waits for an
// unavailable store, and notes the outage in trouble.
func untilDone(ctx context.Context, trouble *telemetry.Trouble, do func() error) error {
	return retry.UntilDone(ctx, retry.Backoff(retryAtLeast, retryAtMost), trouble, isInvalid, do)
}

func isInvalid(err error) bool { return errors.Is(err, jobevent.ErrInvalid) }

func isDue(err error, _ int) bool { return isInvalid(err) }

// bisect handles a batch at once. If an item in it is invalid, bisect handles halves, down to single items, and passes
// each invalid item to invalid.
func bisect[T any](batch []T, do func([]T) error, invalid func(T, error)) error {
	return batching.Bisect(batch, do(batch), do, isDue, func(one T, err error) error {
		invalid(one, err)
		return nil
	})
}
