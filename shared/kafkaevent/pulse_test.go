package kafkaevent

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/jobweaver/jobweaver/shared/kafkatest"
	"github.com/jobweaver/jobweaver/shared/testwait"
)

// gate forwards what clients send to a broker, until it is frozen.
type gate struct {
	listener net.Listener
	frozen   chan struct{}
	running  sync.WaitGroup
}

func newGate(t *testing.T, broker string) *gate {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{listener: listener, frozen: make(chan struct{})}
	var mu sync.Mutex
	var open []net.Conn
	g.running.Go(func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", broker)
			if err != nil {
				_ = in.Close()
				continue
			}
			mu.Lock()
			open = append(open, in, out)
			mu.Unlock()
			g.running.Go(func() { g.pass(out, in) })
			g.running.Go(func() { g.pass(in, out) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		mu.Lock()
		for _, conn := range open {
			_ = conn.Close()
		}
		mu.Unlock()
		g.running.Wait()
	})
	return g
}

func (g *gate) pass(to io.Writer, from io.Reader) {
	buffer := make([]byte, 4096)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		select {
		case <-g.frozen:
		default:
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
	}
}

func (g *gate) addr() string { return g.listener.Addr().String() }

func newPulse(t *testing.T, brokers ...string) *Pulse {
	t.Helper()
	p, err := NewPulse(Config{Brokers: brokers})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func (p *Pulse) askFor(t *testing.T, d time.Duration) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	return p.Ask(ctx)
}

func TestAPulseIsFeltOverOneConnection(t *testing.T) {
	t.Parallel()
	p := newPulse(t, kafkatest.Brokers(t)...)
	if err := p.askFor(t, time.Minute); err != nil {
		t.Fatal(err)
	}
	heart := p.heart
	for range 3 {
		if err := p.askFor(t, time.Minute); err != nil || p.heart != heart {
			t.Errorf("asked again: %v, on another connection: %t", err, p.heart != heart)
		}
	}
}

func TestAFrozenBrokerHasNoPulseAlthoughItTakesConnections(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	g := newGate(t, brokers[0])
	p := newPulse(t, g.addr())
	if err := p.askFor(t, time.Minute); err != nil {
		t.Fatal(err)
	}
	close(g.frozen)
	for range 3 { // on the connection that it had, and on new ones
		began := time.Now()
		if err := p.askFor(t, 100*time.Millisecond); err == nil || time.Since(began) > 5*time.Second {
			t.Errorf("asked for %s: %v", time.Since(began), err)
		}
	}
	if err := Answers(t.Context(), Config{Brokers: brokers}); err != nil {
		t.Errorf("the broker itself: %v", err)
	}
}

func TestOneLivingBrokerIsEnough(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	p := newPulse(t, "127.0.0.1:1", brokers[0])
	for range 3 {
		if err := p.askFor(t, time.Minute); err != nil {
			t.Error(err)
		}
	}
	if err := newPulse(t, "127.0.0.1:1").askFor(t, time.Minute); err == nil {
		t.Error("no connection has a pulse")
	}
}

// Ask may return before its goroutine has begun, when its context has ended, and Close may be called then.
func TestNothingConnectsAfterClose(t *testing.T) {
	t.Parallel()
	cfg := Config{Brokers: kafkatest.Brokers(t)}
	p := newPulse(t, cfg.Brokers...)
	p.Close()
	if err := p.askFor(t, time.Minute); !errors.Is(err, sarama.ErrClosedClient) || p.heart != nil {
		t.Errorf("a pulse is asked: %v, with a connection: %t", err, p.heart != nil)
	}
	l := NewLags(cfg)
	l.Close()
	if _, err := l.Read(testwait.Within(t, time.Minute)); !errors.Is(err, sarama.ErrClosedClient) || l.admin != nil {
		t.Errorf("lags are read: %v, with a connection: %t", err, l.admin != nil)
	}
}
