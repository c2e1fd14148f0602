package funchost

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/funchost/probe"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/testwait"
)

// endings records in which order functions stop.
type endings struct {
	mu    sync.Mutex
	names []string
}

func (e *endings) add(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.names = append(e.names, name)
}

// run returns a Run that ends as soon as it is stopped.
func (e *endings) run(name string) func(context.Context, Publish) error {
	return func(ctx context.Context, _ Publish) error {
		<-ctx.Done()
		e.add(name)
		return nil
	}
}

// startTogether runs members, of which the first serves probes, until the test ends or stop is called.
func startTogether(t *testing.T, p *place, members ...Member) (s *site, stop func() error) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	for i := range members {
		members[i].Config = p.cfg
		members[i].Config.ShutdownGrace = 20 * time.Second
	}
	members[0].Config.NoListen, members[0].Config.Listener = false, listener
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- RunTogether(ctx, members) }()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	t.Cleanup(func() { _ = stop() })
	return &site{t: t, url: "http://" + listener.Addr().String()}, stop
}

func TestAFunctionOfAProcessStopsAfterThoseThatItNames(t *testing.T) {
	t.Parallel()
	var order endings
	running := func(name string, after ...string) Member {
		return Member{Function: Function{Name: name, Run: order.run(name), KafkaOnly: true}, StopAfter: after}
	}
	_, stop := startTogether(t, newPlace(t), running("last", "second", "first", "absent"), running("second", "first"), running("first"))
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if want := []string{"first", "second", "last"}; !slices.Equal(order.names, want) {
		t.Errorf("stopped in the order %v, want %v", order.names, want)
	}
}

func TestAFunctionThatFailsEndsItsProcessByName(t *testing.T) {
	t.Parallel()
	var order endings
	broken := errors.New("broken for good")
	_, stop := startTogether(t, newPlace(t),
		Member{Function: Function{Name: "sound", Run: order.run("sound"), KafkaOnly: true}},
		Member{Function: Function{Name: "ill", KafkaOnly: true, Run: func(context.Context, Publish) error { return broken }}})
	testwait.Until(t, "the other function has stopped", func() bool {
		order.mu.Lock()
		defer order.mu.Unlock()
		return len(order.names) == 1
	})
	if err := stop(); !errors.Is(err, broken) || !strings.Contains(err.Error(), "ill") {
		t.Errorf("ended with %v", err)
	}
}

func TestTheProbesOfAProcessShowEachFunction(t *testing.T) {
	t.Parallel()
	var order endings
	away := func(context.Context) error { return errors.New("no database") }
	s, stop := startTogether(t, newPlace(t),
		Member{Function: Function{Name: "front", Run: order.run("front"), KafkaOnly: true}, StopAfter: []string{"worker"}},
		Member{Function: Function{Name: "behind", Run: order.run("behind"), KafkaOnly: true, Ready: away}},
		Member{Function: Function{Name: "worker", KafkaOnly: true, Run: func(ctx context.Context, _ Publish) error {
			<-ctx.Done()
			testwait.Until(t, "the probe has answered", func() bool { return order.has("probed") })
			return nil
		}}})
	var last answered
	testwait.Until(t, "the front is up", func() bool {
		last = s.do("GET", probe.ReadinessPath, "")
		return strings.Contains(last.body, `"front":"UP"`)
	})
	if last.status != 503 || !strings.Contains(last.body, `"behind: database is away"`) {
		t.Errorf("answered %d %s", last.status, last.body)
	}
	if live := s.do("GET", probe.LivenessPath, ""); live.status != 200 || !strings.Contains(live.body, `"behind":"UP"`) {
		t.Errorf("liveness answered %d %s", live.status, live.body)
	}
	go func() { _ = stop() }()
	testwait.Until(t, "the probe answers that the process stops", func() bool {
		return strings.Contains(s.do("GET", probe.ReadinessPath, "").body, `"front":"stopping"`)
	})
	order.add("probed")
	if err := stop(); err != nil {
		t.Fatal(err)
	}
}

func (e *endings) has(name string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Contains(e.names, name)
}

// Clients of a process that accepts requests must not lose it because another part does not work.
func TestAProcessThatServesHTTPIsReadyWhenThatPartIs(t *testing.T) {
	t.Parallel()
	away := func(context.Context) error { return errors.New("no database") }
	s, _ := startTogether(t, newPlace(t),
		Member{Function: Function{Name: "front", HTTP: http.NotFoundHandler()}},
		Member{Function: Function{Name: "behind", Ready: away, Tick: func(context.Context) ([]jobevent.Item, time.Duration, error) {
			return nil, time.Hour, nil
		}}})
	testwait.Until(t, "the probe answers 200", func() bool { return s.do("GET", probe.ReadinessPath, "").status == 200 })
	if got := s.do("GET", probe.ReadinessPath, ""); !strings.Contains(got.body, `"behind":"database is away"`) {
		t.Errorf("answered %s", got.body)
	}
}
