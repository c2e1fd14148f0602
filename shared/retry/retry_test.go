package retry

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestABackoffGrowsToItsLimit(t *testing.T) {
	t.Parallel()
	const first, last = 100 * time.Millisecond, 5 * time.Second
	b := Backoff(first, last)
	for want := first; want < last; want *= 2 {
		if got := b.NextBackOff(); got < want/2 || got > want {
			t.Errorf("waits %s, want about %s", got, want)
		}
	}
	for range 5 {
		if got := b.NextBackOff(); got > last || got < last/2 {
			t.Errorf("waits %s at last", got)
		}
	}
	b.Reset()
	if got := b.NextBackOff(); got > first {
		t.Errorf("waits %s after a reset", got)
	}
}

func TestAPauseEndsWithItsTimeOrItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		began := time.Now()
		if !Pause(ctx, time.Hour) || time.Since(began) != time.Hour {
			t.Errorf("paused for %s", time.Since(began))
		}
		cancel()
		if Pause(ctx, time.Hour) {
			t.Error("paused beyond its context")
		}
	})
}
