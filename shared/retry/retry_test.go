package retry

import (
	"context"
	"errors"
	"slices"
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

// outages are the errors that were noted; nil: the end of one.
type outages []error

func (o *outages) Note(_ context.Context, err error, _ ...any) { *o = append(*o, err) }

// crowded asks for a pause of a minute.
type crowded struct{ error }

func (crowded) RetryAfter() time.Duration { return time.Minute }

func TestAnOperationIsRepeatedUntilItIsDoneOrNeverCanBe(t *testing.T) {
	t.Parallel()
	away, invalid := errors.New("away"), errors.New("invalid")
	busy := crowded{errors.New("busy")}
	for name, c := range map[string]struct {
		results  []error
		noted    []error
		atLeast  time.Duration
		lessThan time.Duration
		returns  error
	}{
		"done":                    {[]error{nil}, []error{nil}, 0, 1, nil},
		"after two failures":      {[]error{away, away, nil}, []error{away, away, nil}, 150 * time.Millisecond, 301 * time.Millisecond, nil},
		"after a requested pause": {[]error{busy, nil}, []error{busy, nil}, time.Minute, time.Minute + 1, nil},
		"never":                   {[]error{away, invalid}, []error{away, nil}, 50 * time.Millisecond, 101 * time.Millisecond, invalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var noted outages
				began, calls := time.Now(), 0
				err := UntilDone(t.Context(), Backoff(100*time.Millisecond, time.Second), &noted,
					func(err error) bool { return errors.Is(err, invalid) },
					func() error { calls++; return c.results[calls-1] })
				took := time.Since(began)
				if !errors.Is(err, c.returns) || !slices.Equal(noted, c.noted) || took < c.atLeast || took >= c.lessThan {
					t.Errorf("returned %v in %s, noted %v", err, took, noted)
				}
			})
		})
	}
}

func TestAnOperationThatFailsEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		began, away := time.Now(), errors.New("away")
		var noted outages
		never := func(error) bool { return false }
		err := UntilDone(ctx, Backoff(time.Second, time.Minute), &noted, never, func() error { return away })
		if !errors.Is(err, away) || time.Since(began) != 10*time.Second || len(noted) == 0 {
			t.Errorf("returned %v in %s, noted %v", err, time.Since(began), noted)
		}
		if err := UntilDone(ctx, Backoff(time.Second, time.Minute), &noted, never, func() error { return away }); !errors.Is(err, away) {
			t.Error(err)
		}
	})
}
