// Package retry spaces the tries of an operation.
package retry

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// Backoff returns waits that double from first to last. Up to half of each is cut off at random, so that processes
// that failed together do not try again together.
func Backoff(first, last time.Duration) *backoff.ExponentialBackOff {
	b := backoff.NewExponentialBackOff()
	b.Multiplier = 2
	// A factor of a third makes ¾·d a wait between ½·d and d.
	b.RandomizationFactor = 1.0 / 3
	b.InitialInterval, b.MaxInterval = first*3/4, last*3/4
	b.Reset()
	return b
}

// Pause waits for d and reports whether ctx is still alive after it.
func Pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Trouble records the outages of an operation, as telemetry.Trouble does.
type Trouble interface {
	Note(ctx context.Context, err error, fields ...any)
}

// After is an error that asks for a longer pause.
type After interface {
	error
	RetryAfter() time.Duration
}

// UntilDone calls do until it succeeds, isFinal holds for its error, or ctx ends. It returns the last error. It notes
// each error that another call may cure in trouble, and nil when the operation is done or can never be.
func UntilDone(
	ctx context.Context, wait *backoff.ExponentialBackOff, trouble Trouble, isFinal func(error) bool, do func() error,
) error {
	for {
		err := do()
		if err == nil || isFinal(err) {
			trouble.Note(ctx, nil)
			return err
		}
		if ctx.Err() != nil {
			return err
		}
		trouble.Note(ctx, err)
		pause := wait.NextBackOff()
		if asks := After(nil); errors.As(err, &asks) {
			pause = max(pause, asks.RetryAfter())
		}
		if !Pause(ctx, pause) {
			return err
		}
	}
}
