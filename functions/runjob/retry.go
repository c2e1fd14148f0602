package runjob

import (
	"context"
	"errors"

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
	wait := retry.Backoff(retryAtLeast, retryAtMost)
	for {
		err := do()
		if err == nil || errors.Is(err, jobevent.ErrInvalid) {
			trouble.Note(ctx, nil)
			return err
		}
		if ctx.Err() != nil {
			return err
		}
		trouble.Note(ctx, err)
		if !retry.Pause(ctx, wait.NextBackOff()) {
			return err
		}
	}
}

// bisect handles a batch at once. If an item in it is invalid, bisect handles halves, down to single items, and passes
// each invalid item to invalid.
func bisect[T any](batch []T, do func([]T) error, invalid func(T, error)) error {
	err := do(batch)
	if err == nil || !errors.Is(err, jobevent.ErrInvalid) {
		return err
	}
	if len(batch) == 1 {
		invalid(batch[0], err)
		return nil
	}
	half := len(batch) / 2
	if err := bisect(batch[:half], do, invalid); err != nil {
		return err
	}
	return bisect(batch[half:], do, invalid)
}
