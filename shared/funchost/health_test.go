package funchost

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/jobweaver/jobweaver/infra/laptop/freeport"
	"github.com/jobweaver/jobweaver/shared/funchost/probe"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// A process that the liveness probe has killed cannot be asked any more, so its log has the reason.
func TestTheLogNamesTheCallForWhichTheLivenessProbeFails(t *testing.T) {
	t.Parallel()
	h := &host{cfg: Config{StuckAfter: -1}, monitor: probe.NewMonitor(time.Minute)}
	end := h.calls.Begin("handle")
	var log strings.Builder
	ctx := telemetry.WithLogger(t.Context(), slog.New(slog.NewTextHandler(&log, nil)))
	ask := func() int {
		answer := httptest.NewRecorder()
		h.routes().ServeHTTP(answer, httptest.NewRequestWithContext(ctx, "GET", probe.LivenessPath, nil))
		return answer.Code
	}
	if got := ask(); got != 503 || !strings.Contains(log.String(), "handle has not ended") {
		t.Errorf("answered %d and logged %q", got, log.String())
	}
	end()
	if got := ask(); got != 200 || !strings.Contains(log.String(), "works again") {
		t.Errorf("answered %d and logged %q", got, log.String())
	}
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

// The database answers, and refuses every write: waiting for the grace would hide that.
func TestReadinessNamesTheOutageOfTheDatabase(t *testing.T) {
	t.Parallel()
	var full atomic.Bool
	s := newSite(t, Config{Sink: "http://127.0.0.1:1", ReadinessGrace: time.Hour}, Function{
		Name: "full-disk", Silent: true,
		Handle: func(context.Context, []jobevent.Item) ([]jobevent.Item, error) { return nil, nil },
		Ready: func(context.Context) error {
			if full.Load() {
				return fmt.Errorf("ping: %w", &pgconn.PgError{Code: "53100"})
			}
			return nil
		},
	})
	s.untilReadiness(200)
	exports := func(ready string) {
		t.Helper()
		if got := s.do("GET", "/metrics", ""); !strings.Contains(got.body, `jobweaver_ready{function="full-disk"} `+ready) {
			t.Errorf("the metric is not %s", ready)
		}
	}
	exports("1")
	full.Store(true)
	s.untilReadiness(503)
	exports("0")
	if got := s.do("GET", "/health/readiness", ""); !strings.Contains(got.body, "the disk of the database is full") {
		t.Errorf("it answers %+v", got)
	}
	full.Store(false)
	s.untilReadiness(200)
}

func TestASilentFunctionNeedsNoBroker(t *testing.T) {
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
