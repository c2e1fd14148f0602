package funchost

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/retry"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// newClock returns a host with only a clock, in a bubble with its own time; publish receives what it publishes.
func newClock(f Function, publish func(context.Context, []event.Event) error) *host {
	f.Name = "clock"
	meter := telemetry.NewMeter(f.Name)
	return &host{
		f: f, meter: meter, clock: make(chan struct{}, 1), ticking: telemetry.Trouble{What: "tick"},
		publisher: &publisher{
			meter: meter, trouble: telemetry.Trouble{What: "publish"},
			send: func(ctx context.Context, events []event.Event) ([]event.Event, error) {
				return events, publish(ctx, events)
			},
		},
	}
}

// runFor runs the clock for a while and waits for its end.
func runFor(h *host, d time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	h.tickLoop(ctx, context.Background())
}

func TestTheClockTicksWhenTheFunctionAsksForIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var at []time.Duration
		waits := []time.Duration{0, 0, time.Second, 3 * time.Second, time.Hour}
		runFor(newClock(Function{Tick: func(context.Context) ([]jobevent.Item, time.Duration, error) {
			at = append(at, time.Since(began))
			return nil, waits[len(at)-1], nil
		}}, nil), time.Minute)
		want := []time.Duration{0, 0, 0, time.Second, 4 * time.Second}
		if len(at) != len(want) {
			t.Fatalf("ticked at %v", at)
		}
		for i := range want {
			if at[i] != want[i] {
				t.Errorf("ticked at %v, want %v", at, want)
			}
		}
	})
}

func TestAWakeUpShortensTheSleep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		wake := make(chan struct{}, 1)
		ticks := 0
		h := newClock(Function{Wake: wake, Tick: func(context.Context) ([]jobevent.Item, time.Duration, error) {
			ticks++
			return nil, time.Hour, nil
		}}, nil)
		go func() {
			for range 3 {
				retry.Pause(t.Context(), time.Second)
				wake <- struct{}{}
			}
			close(wake) // wakes once, not for ever
		}()
		runFor(h, time.Minute)
		if ticks != 5 {
			t.Errorf("ticked %d times", ticks)
		}
	})
}

func TestAFailingTickIsRetriedWithGrowingPauses(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func() error{
		"error": func() error { return errors.New("away") },
		"panic": func() error { panic("no") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				wake := make(chan struct{}, 1)
				wake <- struct{}{} // must not shorten the waits
				ticks := 0
				runFor(newClock(Function{Wake: wake, Tick: func(context.Context) ([]jobevent.Item, time.Duration, error) {
					ticks++
					return nil, 0, fail()
				}}, nil), 60*time.Second)
				// 100 ms doubled six times up to 5 s, a random half of it less
				if ticks < 15 || ticks > 35 {
					t.Errorf("ticked %d times in a minute", ticks)
				}
			})
		})
	}
}

func TestTheItemsOfATickArePublishedBeforeTheNext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ticks, tries := 0, 0
		h := newClock(Function{Tick: func(context.Context) ([]jobevent.Item, time.Duration, error) {
			ticks++
			return []jobevent.Item{ofJob(t, jobevent.TypeDeadLettered, "v", uuid.New())}, time.Hour, nil
		}}, func(context.Context, []event.Event) error {
			if tries++; tries < 5 {
				return errors.New("broker away")
			}
			return nil
		})
		runFor(h, time.Minute)
		if ticks != 1 || tries != 5 {
			t.Errorf("ticked %d times, published %d times", ticks, tries)
		}
	})
}

func TestAStopWaitsForTheTick(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		finished := false
		runFor(newClock(Function{Tick: func(ctx context.Context) ([]jobevent.Item, time.Duration, error) {
			retry.Pause(t.Context(), 2*time.Second)
			finished = ctx.Err() == nil
			return nil, 0, nil
		}}, nil), time.Second)
		if !finished {
			t.Error("the tick was ended with its clock")
		}
	})
}

func TestAPingIsATick(t *testing.T) {
	t.Parallel()
	var ticks, atOnce atomic.Int32
	s := newSite(t, Config{Ticks: ticksOff}, Function{
		Tick: func(context.Context) ([]jobevent.Item, time.Duration, error) {
			if atOnce.Add(1) > 1 {
				t.Error("two ticks at once")
			}
			defer atOnce.Add(-1)
			next := time.Minute
			if ticks.Add(1) == 1 {
				next = 0 // tick again at once
			}
			return []jobevent.Item{ofJob(t, jobevent.TypeStatus, "v", uuid.New())}, next, nil
		},
	})
	if got := s.ping(); got.status != 202 {
		t.Fatalf("answered %+v", got)
	}
	if n := ticks.Load(); n != 2 {
		t.Errorf("ticked %d times", n)
	}
	if _, times := s.sink.get("v"); times != 2 {
		t.Errorf("got %d times", times)
	}
}

// A PingSource does not wait for the tick before: pings that pile up would take the slots of events.
func TestOnlyOnePingWaitsForARunningTick(t *testing.T) {
	t.Parallel()
	var ticks atomic.Int32
	began, end := make(chan struct{}, 2), make(chan struct{})
	s := newSite(t, Config{Ticks: ticksOff}, Function{Tick: func(context.Context) ([]jobevent.Item, time.Duration, error) {
		ticks.Add(1)
		began <- struct{}{}
		<-end
		return nil, time.Minute, nil
	}})
	answers := make(chan answered)
	ask := func() { answers <- s.ping() }
	go ask()
	await(t, "a tick", began)
	for range 5 {
		go ask()
	}
	for range 4 { // the fifth waits
		if got := <-answers; got.status != 202 {
			t.Errorf("answered %+v", got)
		}
	}
	close(end)
	for range 2 {
		if got := <-answers; got.status != 202 {
			t.Errorf("answered %+v", got)
		}
	}
	if n := ticks.Load(); n != 2 {
		t.Errorf("ticked %d times", n)
	}
}

func TestAPingWhoseTickFailsComesAgain(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func() error{
		"error":   func() error { return errors.New("away") },
		"invalid": func() error { return jobevent.ErrInvalid },
		"panic":   func() error { panic("no") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, Config{}, Function{Tick: func(context.Context) ([]jobevent.Item, time.Duration, error) {
				return nil, 0, fail()
			}})
			if got := s.ping(); got.status != 503 {
				t.Errorf("answered %+v", got)
			}
		})
	}
}

func TestAFunctionOnHTTPHasItsOwnClock(t *testing.T) {
	t.Parallel()
	ticked := make(chan struct{}, 1)
	newSite(t, Config{Ticks: ticksOn}, Function{Tick: func(context.Context) ([]jobevent.Item, time.Duration, error) {
		ticked <- struct{}{}
		return nil, time.Hour, nil
	}})
	await(t, "a tick", ticked)
}
