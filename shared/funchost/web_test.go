package funchost

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/funchost/probe"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/testwait"
)

func TestReadinessFollowsTheStore(t *testing.T) {
	t.Parallel()
	var away atomic.Bool
	s := newSite(t, Config{ReadinessGrace: 50 * time.Millisecond}, Function{Tick: neverTick, Ready: func(context.Context) error {
		if away.Load() {
			return errors.New("secret address refused")
		}
		return nil
	}})
	if got := s.untilReadiness(200); !strings.Contains(got.body, `"UP"`) {
		t.Errorf("answered %+v", got)
	}
	away.Store(true)
	got := s.untilReadiness(503)
	if !strings.Contains(got.body, `"DOWN"`) || strings.Contains(got.body, "secret") {
		t.Errorf("answered %+v", got)
	}
	if got := s.do("GET", "/health/liveness", ""); got.status != 200 {
		t.Errorf("liveness answered %+v", got)
	}
	away.Store(false)
	s.untilReadiness(200)
}

// untilReadiness waits until the probe has the status.
func (s *site) untilReadiness(status int) answered {
	s.t.Helper()
	return s.untilReadinessWith(status, "")
}

// untilReadinessWith waits until the probe has the status and text in its body.
func (s *site) untilReadinessWith(status int, text string) answered {
	s.t.Helper()
	for ctx := testwait.Within(s.t, time.Minute); ; <-time.After(20 * time.Millisecond) {
		got := s.do("GET", "/health/readiness", "")
		if got.status == status && strings.Contains(got.body, text) {
			return got
		}
		if ctx.Err() != nil {
			s.t.Fatalf("readiness was never %d with %q; the last answer: %+v", status, text, got)
		}
	}
}

func TestAProbeIsAnsweredAtOnceWhileADependencyHangs(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	s := newSite(t, Config{ReadinessGrace: time.Minute}, Function{Tick: neverTick, Ready: func(context.Context) error {
		<-release
		return errors.New("away")
	}})
	t.Cleanup(func() { close(release) })
	for range 10 {
		if got := s.do("GET", "/health/readiness", ""); got.status != 503 {
			t.Fatalf("answered %+v", got)
		}
	}
}

func TestAFunctionOnKafkaIsReadyOnceItIsInItsGroup(t *testing.T) {
	t.Parallel()
	deaf, err := net.Listen("tcp", "127.0.0.1:0") // never answers
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = deaf.Close() })
	nowhere := placeOn(t, []string{deaf.Addr().String()})
	nowhere.cfg.ShutdownGrace = time.Second // it takes longer to give up such a broker
	waiting := nowhere.site(Function{})
	if got := waiting.do("GET", "/health/readiness", ""); got.status != 503 {
		t.Errorf("without a broker: %+v", got)
	}
	s := newPlace(t).site(Function{})
	s.untilReadiness(200)
}

func TestTheGatewayIsReadyWithoutABroker(t *testing.T) {
	t.Parallel()
	p := placeOn(t, []string{"127.0.0.1:1"})
	s := p.site(Function{Topics: []string{}, HTTP: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprint(w, "own page ", r.URL.Path)
	})})
	s.untilReadiness(200)
	if got := s.do("DELETE", "/api/x", ""); got.body != "own page /api/x" {
		t.Errorf("answered %+v", got)
	}
}

// site hosts f on Kafka, with probes over HTTP.
func (p *place) site(f Function) *site {
	p.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		p.t.Fatal(err)
	}
	p.cfg.NoListen, p.cfg.Listener = false, listener
	f.Name = p.name
	if f.Topics == nil {
		f.Topics = []string{jobevent.RunTopic(p.in)}
		f.Handle = func(context.Context, []jobevent.Item) ([]jobevent.Item, error) { return nil, nil }
	}
	return &site{t: p.t, url: "http://" + listener.Addr().String(), stop: start(p.t, p.cfg, f)}
}

func TestMetricsCountWhatAFunctionDoes(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	answered := p.answered()
	p.send(0, 3)
	s := p.site(Function{Topics: []string{jobevent.RunTopic(p.in)}, Handle: func(
		_ context.Context, batch []jobevent.Item,
	) ([]jobevent.Item, error) {
		return p.answers(batch), nil
	}})
	answered.wait(t, 3)
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	other := newSite(t, Config{}, Function{Tick: neverTick}) // in the same process, with the same registry
	got := other.do("GET", "/metrics", "").body
	for _, want := range []string{
		fmt.Sprintf(`jobweaver_events_handled_total{function=%q,type=%q} 3`, p.name, jobevent.TypeRun),
		fmt.Sprintf(`jobweaver_events_published_total{function=%q,type=%q} 3`, p.name, jobevent.TypeRun),
		fmt.Sprintf(`jobweaver_handle_duration_seconds_count{function=%q}`, p.name),
		fmt.Sprintf(`jobweaver_build_info{function=%q,version="dev"} 1`, p.name),
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s", want)
		}
	}
}

func TestAStopServesUntilClientsHaveNoticedIt(t *testing.T) {
	t.Parallel()
	inside, release := make(chan struct{}), make(chan struct{})
	s := newSite(t, Config{ShutdownDelay: time.Minute, ShutdownGrace: 2 * time.Second}, Function{
		Handle: func(context.Context, []jobevent.Item) ([]jobevent.Item, error) {
			close(inside)
			<-release
			return nil, nil
		},
	})
	finished := make(chan answered, 1)
	go func() { finished <- s.do("POST", "/", "{}", binary("1")...) }()
	await(t, "the request is handled", inside)
	stopped := make(chan error, 1)
	go func() { stopped <- s.stop() }()
	s.untilReadiness(503)
	close(release)
	if got := await(t, "the answer", finished); got.status != 202 {
		t.Errorf("answered %+v", got)
	}
	if err := await(t, "the stop", stopped); !errors.Is(err, errLate) {
		t.Errorf("a delay beyond the grace ended with %v", err)
	}
}

// net/http's mux would answer TRACE with 404, and redirect a path that is not clean.
func TestAFunctionsOwnHTTPReceivesEveryPathExceptProbes(t *testing.T) {
	t.Parallel()
	s := newSite(t, Config{FuncTransport: TransportKafka}, Function{HTTP: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTeapot)
	})})
	for _, c := range []struct {
		method, path string
		status       int
	}{
		{"GET", "/", 418}, {"POST", "//api/jobs", 418}, {"POST", "/api/../api/jobs", 418}, {"GET", "/health/", 418},
		{"HEAD", probe.LivenessPath, 200}, {"TRACE", probe.LivenessPath, 405}, {"POST", probe.ReadinessPath, 405}, {"TRACE", metricsPath, 405},
	} {
		if got := s.do(c.method, c.path, ""); got.status != c.status {
			t.Errorf("%s %s answered %+v, want %d", c.method, c.path, got, c.status)
		}
	}
}
