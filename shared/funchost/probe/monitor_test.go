package probe

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobweaver/jobweaver/shared/telemetry"
)

const (
	grace = 10 * time.Second
	limit = 10 * time.Minute
)

// bubble has a monitor of one dependency, in a bubble with its own time.
type bubble struct {
	monitor *Monitor
	calls   Calls
	oldest  []func() (string, time.Time)
	away    atomic.Bool // checks fail
	hung    atomic.Bool // checks do not return
	checks  atomic.Int64
}

func newBubble(t *testing.T) *bubble {
	t.Helper()
	b := &bubble{monitor: NewMonitor(grace)}
	b.oldest = append(b.oldest, b.calls.Oldest)
	check := func(ctx context.Context) error {
		b.checks.Add(1)
		if b.hung.Load() {
			<-ctx.Done()
			return ctx.Err()
		}
		if b.away.Load() {
			return errors.New("away")
		}
		return nil
	}
	b.monitor.Add(&Dependency{Reason: "it is away", External: true, Check: check, Trouble: telemetry.Trouble{What: "ask"}})
	if b.ready() {
		t.Error("ready before the first answer")
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); b.monitor.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	return b
}

func (b *bubble) ready() bool { return b.monitor.Ready(time.Now()) == nil }
func (b *bubble) alive() bool { return b.monitor.Alive(time.Now(), limit, b.oldest...) == nil }

// after sleeps, and lets every goroutine run that is due then.
func after(d time.Duration) {
	<-time.After(d) // of the bubble's time
	synctest.Wait()
}

func TestReadinessFailsAfterTheGrace(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]func(b *bubble, away bool){
		"refused": func(b *bubble, away bool) { b.away.Store(away) },
		"frozen":  func(b *bubble, away bool) { b.hung.Store(away) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBubble(t)
				after(0)
				if !b.ready() {
					t.Error("not ready after it")
				}
				after(time.Hour)
				c(b, true)
				if after(grace - checkEvery - time.Second); !b.ready() {
					t.Error("not ready before the grace was over")
				}
				if after(time.Second + checkEvery + checkAgain); b.ready() {
					t.Error("ready after it")
				}
				after(time.Hour)
				c(b, false)
				if after(checkPatience + 2*checkAgain); !b.ready() {
					t.Error("not ready again")
				}
				c(b, true)
				if after(grace - checkEvery - time.Second); !b.ready() {
					t.Error("no new grace for what is away anew")
				}
			})
		})
	}
}

// The probe fails within the grace, however long before the next check the dependency went away.
func TestTheGraceBeginsWithTheLastGoodAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		after(checkEvery) // a check has just succeeded
		after(100 * time.Millisecond)
		b.away.Store(true)
		if after(grace + time.Millisecond); b.ready() {
			t.Error("ready 10 s after the dependency went away")
		}
	})
}

func TestAProbeNamesTheOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var failure atomic.Pointer[error]
		none := error(nil)
		failure.Store(&none)
		full, frozen := errors.New("full"), errors.New("frozen")
		m := NewMonitor(grace)
		m.Add(&Dependency{
			Reason: "it is away", Check: func(context.Context) error { return *failure.Load() },
			Why: func(err error) string {
				if errors.Is(err, full) {
					return "its disk is full"
				}
				return ""
			},
			Certain: func(err error) bool { return errors.Is(err, full) },
		})
		ctx, cancel := context.WithCancel(t.Context())
		go m.Run(ctx)
		after(0)
		for _, c := range []struct {
			failure error
			wait    time.Duration
			want    string
		}{
			{nil, 0, ""}, {frozen, grace / 2, ""}, {frozen, grace, "it is away"}, {nil, checkEvery, ""},
			{full, checkEvery, "its disk is full"}, // without a grace: waiting does not help
			{nil, checkEvery, ""},
		} {
			failure.Store(&c.failure)
			after(c.wait)
			got := ""
			if err := m.Ready(time.Now()); err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("%v after %s: %q", c.failure, c.wait, got)
			}
		}
		cancel()
		synctest.Wait()
	})
}

func TestReadinessDoesNotFlapWithItsDependency(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		after(0)
		for i := range 100 {
			b.away.Store(i%2 == 0)
			if after(3 * time.Second); !b.ready() {
				t.Fatalf("not ready after %d changes", i)
			}
		}
	})
}

func TestAnAvailableDependencyIsNotCheckedMoreOftenThanNeeded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		after(time.Minute)
		if asked := b.checks.Load(); asked > int64(time.Minute/checkEvery)+1 {
			t.Errorf("asked %d times in a minute", asked)
		}
	})
}

func TestACallThatHangsIsNotAlive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		after(0)
		end := b.calls.Begin("handle")
		if after(limit); !b.alive() {
			t.Error("too early")
		}
		if after(time.Second); b.alive() {
			t.Error("not seen")
		}
		end()
		if !b.alive() {
			t.Error("not alive after its end")
		}
	})
}

func TestACallThatHangsWhileTheDatabaseIsUnavailableIsAlive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		after(0)
		b.calls.Begin("handle")
		b.hung.Store(true)
		if after(24 * time.Hour); !b.alive() {
			t.Error("not alive while the database is away")
		}
		b.hung.Store(false)
		after(checkPatience + time.Second)
		if after(limit - 10*time.Second); !b.alive() {
			t.Error("the time without a database was counted")
		}
		if after(20 * time.Second); b.alive() {
			t.Error("the time since was not counted")
		}
	})
}

func TestAnOldestOfTheFunctionsOwnCountsAsACall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		var since atomic.Pointer[time.Time]
		b.oldest = append(b.oldest, func() (string, time.Time) {
			if at := since.Load(); at != nil {
				return "it", *at
			}
			return "", time.Time{}
		})
		if after(time.Hour); !b.alive() {
			t.Error("not alive while there is nothing")
		}
		now := time.Now()
		since.Store(&now)
		if after(limit + time.Second); b.alive() {
			t.Error("not seen")
		}
	})
}
