// Package retry spaces the tries of an operation.
package retry

import (
	"context"
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
