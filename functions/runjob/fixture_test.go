package runjob

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/jobweaver/jobweaver/functions/runjob/handlers"
	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/kafkaevent"
	"github.com/jobweaver/jobweaver/shared/kafkatest"
	"github.com/jobweaver/jobweaver/shared/outbound"
	"github.com/jobweaver/jobweaver/shared/pgtest"
	"github.com/jobweaver/jobweaver/shared/workerdb"
)

func TestMain(m *testing.M) {
	slog.SetLogLoggerLevel(slog.LevelError) // tests provoke the warnings
	pgtest.Main(m)
}

const patience = 30 * time.Second // for what must happen; a test that waits so long has failed

// fixture has a broker, a database and a queue for workers, and records what their handlers do.
type fixture struct {
	t        *testing.T
	url      string
	kafka    kafkaevent.Config
	producer *kafkaevent.Producer
	queue    string

	mu        sync.Mutex
	cond      sync.Cond
	starts    map[string]int       // by token
	began     []string             // tokens, in the order of the starts
	ends      map[string]error     // why a handler's context ended, of BLOCK
	gates     map[string]chan bool // by token; closed: the handler returns
	published []jobevent.Item
	kinds     map[string]int // the number of published events of each type
	deafen    bool           // publishing fails
	allOpen   bool

	more map[string]handlers.Handler // handlers of the test, for workers that start from now on
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	t.Parallel()
	return newFixtureAlone(t)
}

// newFixtureAlone returns a fixture for a test that is not parallel.
func newFixtureAlone(t *testing.T) *fixture {
	t.Helper()
	h := &fixture{
		t: t, url: pgtest.Database(t, migrations.Worker), queue: kafkatest.Prefix() + "q",
		kafka:  kafkaevent.Config{Brokers: kafkatest.Brokers(t)},
		starts: map[string]int{}, ends: map[string]error{}, gates: map[string]chan bool{}, kinds: map[string]int{},
	}
	h.cond.L = &h.mu
	if err := kafkaevent.CreateTopics(t.Context(), h.kafka, jobevent.Topics([]string{h.queue})); err != nil {
		t.Fatal(err)
	}
	var err error
	if h.producer, err = kafkaevent.NewProducer(h.kafka); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.producer.Close)
	return h
}

// worker is a running Function.
type worker struct {
	*Function
	stop func() // and waits until it has left
}

func (h *fixture) start(change func(*Config, *timing)) *worker {
	h.t.Helper()
	store, err := workerdb.Open(h.t.Context(), pgtest.As(h.url, Name))
	if err != nil {
		h.t.Fatal(err)
	}
	cfg := Config{Queues: []string{h.queue}, PoolSize: 12, QueueSize: 100, Grace: 25 * time.Second, Kafka: h.kafka}
	times := defaultTiming
	if change != nil {
		change(&cfg, &times)
	}
	f, err := New(cfg, store, h.registry(), prometheus.NewRegistry())
	if err != nil {
		h.t.Fatal(err)
	}
	f.timing = times
	f.pool.Silence = times.silence
	ctx, cancel := context.WithCancel(context.WithoutCancel(h.t.Context()))
	left := make(chan error, 1)
	go func() { left <- f.Run(ctx, h.publish) }()
	w := &worker{Function: f}
	w.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-left; err != nil {
			h.t.Errorf("Run: %v", err)
		}
		store.Close()
	})
	h.t.Cleanup(func() {
		h.openAll()
		w.stop()
	})
	return w
}

// registry returns a registry with SIMULATION and handlers that a test controls.
func (h *fixture) registry() *handlers.Registry {
	client, err := outbound.New(outbound.Config{Allow: []string{"127.0.0.0/8"}})
	if err != nil {
		h.t.Fatal(err)
	}
	r := handlers.NewRegistry()
	r.OnClose(client.Close)
	h.t.Cleanup(r.Close)
	types := map[string]handlers.Handler{
		"SIMULATION": handlers.NewSimulation(client).Run,
		"BLOCK":      h.block,
		"STUBBORN":   h.stubborn,
		"PANIC":      func(context.Context, *handlers.Attempt) (handlers.Result, error) { panic("oh no") },
		"ANSWER": func(_ context.Context, a *handlers.Attempt) (handlers.Result, error) {
			var r struct {
				Wait, Snooze time.Duration
				Depth        int
				Error        string
			}
			if err := json.Unmarshal(a.Payload, &r); err != nil {
				return handlers.Result{}, err
			}
			if r.Error != "" {
				return handlers.Result{}, errors.New(r.Error)
			}
			output := json.RawMessage(strings.Repeat("[", r.Depth) + "0" + strings.Repeat("]", r.Depth))
			return handlers.Result{Output: output, WaitFor: r.Wait, Snooze: r.Snooze}, nil
		},
		"NIL": func(context.Context, *handlers.Attempt) (handlers.Result, error) {
			var failure *handlers.Failure
			return handlers.Result{}, failure
		},
		"HUGE": func(context.Context, *handlers.Attempt) (handlers.Result, error) {
			return handlers.Result{Output: json.RawMessage(`"` + string(make([]byte, handlers.MaxOutput)) + `"`)}, nil
		},
	}
	maps.Copy(types, h.more)
	for name, handler := range types {
		err := r.Register(name, nil, func(ctx context.Context, a *handlers.Attempt) (handlers.Result, error) {
			h.update(func() {
				h.starts[a.Token]++
				h.began = append(h.began, a.Token)
			})
			return handler(ctx, a)
		})
		if err != nil {
			h.t.Fatal(err)
		}
	}
	return r
}

// block returns when its gate opens or its context ends.
func (h *fixture) block(ctx context.Context, a *handlers.Attempt) (handlers.Result, error) {
	select {
	case <-h.gate(a.Token):
		return handlers.Result{}, nil
	case <-ctx.Done():
		h.update(func() { h.ends[a.Token] = context.Cause(ctx) })
		return handlers.Result{}, ctx.Err()
	}
}

// stubborn returns when its gate opens, even if its context has ended.
func (h *fixture) stubborn(_ context.Context, a *handlers.Attempt) (handlers.Result, error) {
	<-h.gate(a.Token)
	return handlers.Result{}, nil
}

func (h *fixture) gate(token string) chan bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.gates[token] == nil {
		h.gates[token] = make(chan bool)
		if h.allOpen {
			close(h.gates[token])
		}
	}
	return h.gates[token]
}

// open lets the handler of an attempt return.
func (h *fixture) open(run jobevent.Run) {
	close(h.gate(jobevent.AttemptToken(run.JobID, run.Attempt)))
}

// openAll lets every handler return, also those that have not started yet.
func (h *fixture) openAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.allOpen = true
	for _, gate := range h.gates {
		select {
		case <-gate:
		default:
			close(gate)
		}
	}
}

func (h *fixture) update(change func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change()
	h.cond.Broadcast()
}

// publish is the host's function: it publishes events to Kafka, and records them.
func (h *fixture) publish(ctx context.Context, events []jobevent.Item) error {
	h.mu.Lock()
	deaf := h.deafen
	h.mu.Unlock()
	if deaf {
		return context.DeadlineExceeded
	}
	made, _ := jobevent.Pack(events)
	if err := h.producer.Publish(ctx, made); err != nil {
		return err
	}
	h.update(func() {
		h.published = append(h.published, events...)
		for _, e := range events {
			h.kinds[e.Type()]++
		}
	})
	return nil
}
