package gateway_test

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"golang.org/x/sync/errgroup"

	"github.com/jobweaver/jobweaver/functions/gateway"
	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/kafkaevent"
	"github.com/jobweaver/jobweaver/shared/kafkatest"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

// Jobs are submitted until the gateway stops accepting; each accepted job must be on the topic in the end.
func TestDrainPublishesAllAcceptedJobs(t *testing.T) {
	t.Parallel()
	kafka := kafkaevent.Config{Brokers: kafkatest.Brokers(t)}
	published := tail(t, kafka, jobevent.TopicCreated)
	store, err := apidb.Open(t.Context(), pgtest.As(pgtest.Database(t, migrations.API), gateway.Name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cfg := funchost.Config{
		Listener: listener, Kafka: kafka, FuncTransport: funchost.TransportKafka, ShutdownDelay: 200 * time.Millisecond,
		ShutdownGrace: 10 * time.Second, Queues: []string{"default"},
	}
	f := mustNew(t, gateway.Config{Auth: gateway.AuthOff, Queues: cfg.Queues, Broker: funchost.Reachable(cfg)}, store)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- funchost.Run(ctx, cfg, f.Host()) }()

	base := "http://" + listener.Addr().String()
	accepted := submitUntilRefused(t, base, stop)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	for len(accepted) > 0 {
		select {
		case id := <-published:
			delete(accepted, id)
		case <-time.After(20 * time.Second):
			t.Fatalf("%d accepted jobs were not published", len(accepted))
		}
	}
}

// submitUntilRefused stops the gateway when a hundred jobs are accepted, and continues to submit.
func submitUntilRefused(t *testing.T, base string, stop func()) map[string]bool {
	t.Helper()
	var mu sync.Mutex
	accepted := map[string]bool{}
	var g errgroup.Group
	for range 4 {
		g.Go(func() error {
			for {
				res, err := http.Post(base+"/api/jobs", "application/json", strings.NewReader(plainJob))
				if err != nil {
					return nil // it has stopped accepting
				}
				_ = res.Body.Close()
				mu.Lock()
				if res.StatusCode == http.StatusAccepted {
					accepted[strings.TrimPrefix(res.Header.Get("Location"), "/api/jobs/")] = true
				}
				if len(accepted) == 100 {
					stop()
				}
				mu.Unlock()
			}
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	if len(accepted) < 100 {
		t.Fatalf("only %d jobs were accepted", len(accepted))
	}
	return accepted
}

// tail returns the subjects of a topic's events from now on.
func tail(t *testing.T, kafka kafkaevent.Config, topic string) <-chan string {
	t.Helper()
	tailer, err := kafkaevent.NewTailer(kafka, topic)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	subjects, ended := make(chan string, 100_000), make(chan error, 1)
	go func() {
		ended <- tailer.Run(ctx, func(m *sarama.ConsumerMessage) {
			items, _ := funchost.Decode(m, nil)
			for _, it := range items {
				subjects <- it.Subject()
			}
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	select {
	case <-tailer.Started():
	case <-time.After(30 * time.Second):
		t.Fatal("the topic cannot be read")
	}
	return subjects
}
