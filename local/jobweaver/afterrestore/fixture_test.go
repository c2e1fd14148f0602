package afterrestore_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/jobweaver/jobweaver/functions/runjob/handlers"
	"github.com/jobweaver/jobweaver/infra/laptop/localpostgres"
	"github.com/jobweaver/jobweaver/local/dev"
	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/retry"
)

// fixture runs all functions on its own server, with a job type that records each start.
type fixture struct {
	t      *testing.T
	server *localpostgres.Server
	urls   migrations.URLs
	open   chan struct{} // closed: held jobs continue

	brokers []string // nil: each life has an empty broker

	mu     sync.Mutex
	starts map[string]int // "<jobId>.<attempt>" → how often it started here
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	return newFixtureOn(t, localpostgres.Config{Dir: filepath.Join(t.TempDir(), "pg"), NoSync: true})
}

// newFixtureOn uses the databases in the server's folder, if it has any.
func newFixtureOn(t *testing.T, cfg localpostgres.Config) *fixture {
	t.Helper()
	server, err := localpostgres.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	h := &fixture{t: t, server: server, open: make(chan struct{}), starts: map[string]int{}}
	// A server that is being restored takes readers first, and writers when it has been promoted.
	if err := pgpool.AwaitServer(t.Context(), server.URL(), time.Minute); err != nil {
		t.Fatal(err)
	}
	if h.urls, err = migrations.EnsureDatabases(t.Context(), server.URL()); err != nil {
		t.Fatal(err)
	}
	for url, set := range map[string]migrations.Set{
		h.urls.API: migrations.API, h.urls.Scheduler: migrations.Scheduler, h.urls.Worker: migrations.Worker,
	} {
		if err := migrations.Up(t.Context(), url, set, nil); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// live runs the functions.
func (h *fixture) live(use func(ctx context.Context, c *client.Client) error) {
	h.t.Helper()
	err := dev.Run(h.t.Context(), dev.Options{
		Dir: h.t.TempDir(), Kafka: "embedded", Queues: []string{"default"}, DatabaseURL: h.server.URL(), Brokers: h.brokers,
		Out: h.t.Output(), Metrics: prometheus.NewRegistry(),
		Handlers: map[string]handlers.Handler{"WORK": h.work, "OTHER": h.work},
	}, func(ctx context.Context, url string) error { return use(ctx, client.New(url, "")) })
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *fixture) work(ctx context.Context, a *handlers.Attempt) (handlers.Result, error) {
	h.mu.Lock()
	h.starts[a.Token]++
	h.mu.Unlock()
	var asked struct{ Hold, Fail bool }
	if err := json.Unmarshal(a.Payload, &asked); err != nil {
		return handlers.Result{}, err
	}
	if asked.Hold {
		select {
		case <-h.open:
		case <-ctx.Done():
			return handlers.Result{}, context.Cause(ctx)
		}
	}
	if asked.Fail {
		return handlers.Result{}, errors.New("as it was asked to")
	}
	return handlers.Result{}, nil
}

// dumps dumps the three databases, one after another as people do.
func (h *fixture) dumps(ctx context.Context) (d [3]dump, err error) {
	for i, url := range []string{h.urls.Scheduler, h.urls.Worker, h.urls.API} {
		if d[(i+1)%3], err = takeDump(ctx, url); err != nil {
			return d, err
		}
	}
	return d, nil
}

// until reads a job until it is in the wanted state.
func until(ctx context.Context, c *client.Client, id, what string, is func(*client.Job) bool) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		job, err := c.Get(ctx, id, 0)
		if err == nil && is(job) {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("wait until %s is %s: it is %s, attempt %d: %w", id, what, job.Status, job.Attempt, err)
		}
		retry.Pause(ctx, 20*time.Millisecond)
	}
}

func has(status string) func(*client.Job) bool {
	return func(j *client.Job) bool { return j.Status == status }
}
