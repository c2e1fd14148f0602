package funchost

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/infra/laptop/freeport"
	"github.com/jobweaver/jobweaver/shared/jobevent"
)

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
