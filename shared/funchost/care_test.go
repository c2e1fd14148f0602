package funchost

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobweaver/jobweaver/infra/laptop/freeport"
	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// bubble is a care for one thing, in a bubble with its own time.
type bubble struct {
	host *host
	away atomic.Bool // asks fail
	hung atomic.Bool // or have no answer
	asks atomic.Int64
}

func newBubble(t *testing.T, grace time.Duration) *bubble {
	t.Helper()
	b := &bubble{host: &host{cfg: Config{ReadinessGrace: grace, StuckAfter: defaultStuckAfter}}}
	b.host.f.Ready = func(ctx context.Context) error {
		b.asks.Add(1)
		if b.hung.Load() {
			<-ctx.Done()
			return ctx.Err()
		}
		if b.away.Load() {
			return errors.New("away")
		}
		return nil
	}
	b.host.care = &care{grace: grace}
	b.host.care.add(true, "it is away", "ask", b.host.f.Ready)
	if b.ready() {
		t.Error("ready before the first answer")
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); b.host.care.watch(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	return b
}

func (b *bubble) ready() bool { return b.host.ready(time.Now()) == nil }
func (b *bubble) alive() bool { return b.host.alive(time.Now()) == nil }

// after sleeps and lets everybody do what is due then.
func after(d time.Duration) {
	<-time.After(d) // of the bubble's time
	synctest.Wait()
}

func TestReadinessWaitsForAsLongAsTheGrace(t *testing.T) {
	t.Parallel()
	const grace = defaultReadinessGrace
	for name, c := range map[string]func(b *bubble, away bool){
		"refused": func(b *bubble, away bool) { b.away.Store(away) },
		"frozen":  func(b *bubble, away bool) { b.hung.Store(away) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBubble(t, grace)
				after(0)
				if !b.ready() {
					t.Error("not ready after it")
				}
				after(time.Hour)
				c(b, true)
				if after(grace - time.Second); !b.ready() {
					t.Error("not ready before the grace was over")
				}
				if after(time.Second + askEvery + askAgain); b.ready() {
					t.Error("ready after it")
				}
				after(time.Hour)
				c(b, false)
				if after(askPatience + 2*askAgain); !b.ready() {
					t.Error("not ready again")
				}
				c(b, true)
				if after(grace - time.Second); !b.ready() {
					t.Error("no new grace for what is away anew")
				}
			})
		})
	}
}

func TestReadinessDoesNotFlapWithWhatComesAndGoes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, defaultReadinessGrace)
		after(0)
		for i := range 100 {
			b.away.Store(i%2 == 0)
			if after(3 * time.Second); !b.ready() {
				t.Fatalf("not ready after %d changes", i)
			}
		}
	})
}

func TestWhatIsThereIsNotAskedMoreOftenThanItMustBe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, defaultReadinessGrace)
		after(time.Minute)
		if asked := b.asks.Load(); asked > int64(time.Minute/askEvery)+1 {
			t.Errorf("asked %d times in a minute", asked)
		}
	})
}

func TestACallThatHangsIsNotAlive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, defaultReadinessGrace)
		after(0)
		end := b.host.calls.Begin("handle")
		if after(defaultStuckAfter); !b.alive() {
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

func TestACallThatHangsWhileTheDatabaseIsAwayIsAlive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, defaultReadinessGrace)
		after(0)
		b.host.calls.Begin("handle")
		b.hung.Store(true)
		if after(24 * time.Hour); !b.alive() {
			t.Error("not alive while the database is away")
		}
		b.hung.Store(false)
		after(askPatience + time.Second)
		if after(defaultStuckAfter - 10*time.Second); !b.alive() {
			t.Error("the time without a database was counted")
		}
		if after(20 * time.Second); b.alive() {
			t.Error("the time since was not counted")
		}
	})
}

func TestWhatAFunctionSaysIsOldestCountsAsACall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, defaultReadinessGrace)
		var since atomic.Pointer[time.Time]
		b.host.f.Oldest = func() (string, time.Time) {
			if at := since.Load(); at != nil {
				return "it", *at
			}
			return "", time.Time{}
		}
		if after(time.Hour); !b.alive() {
			t.Error("not alive while there is nothing")
		}
		now := time.Now()
		since.Store(&now)
		if after(defaultStuckAfter + time.Second); b.alive() {
			t.Error("not seen")
		}
	})
}

func TestAFunctionOnHTTPFollowsItsSink(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:"+freeport.For(t))
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(t, Config{Sink: "http://" + listener.Addr().String(), ReadinessGrace: 50 * time.Millisecond}, Function{
		Handle: func(context.Context, []jobevent.Item) ([]jobevent.Item, error) { return nil, nil },
	})
	s.untilReadiness(200)
	_ = listener.Close()
	s.untilReadiness(503)
	if listener, err = net.Listen("tcp", listener.Addr().String()); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	s.untilReadiness(200)
}

func TestAFunctionThatSaysNothingNeedsNoBroker(t *testing.T) {
	t.Parallel()
	p := placeOn(t, []string{"127.0.0.1:1"})
	p.cfg.Ticks = ticksOff
	s := p.site(Function{Topics: []string{}, Tick: neverTick, Silent: true})
	s.untilReadiness(200)
	loud := placeOn(t, []string{"127.0.0.1:1"})
	loud.cfg.Ticks = ticksOff
	if got := loud.site(Function{Topics: []string{}, Tick: neverTick}).do("GET", "/health/readiness", ""); got.status != 503 {
		t.Errorf("one that does answered %+v", got)
	}
}
