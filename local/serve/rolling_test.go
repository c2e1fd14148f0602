package serve_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/client"
)

// balancer passes requests to the processes that are ready, in turn, as the one in docs/servers.md does.
type balancer struct {
	*httptest.Server

	mu      sync.Mutex
	targets []*url.URL
	ready   []*url.URL
	turn    int
}

func newBalancer(t *testing.T) *balancer {
	t.Helper()
	b := &balancer{}
	b.Server = httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		b.mu.Lock()
		defer b.mu.Unlock()
		if len(b.ready) == 0 {
			r.SetURL(&url.URL{Scheme: "http", Host: "none.invalid"})
			return
		}
		b.turn++
		r.SetURL(b.ready[b.turn%len(b.ready)])
	}})
	ctx, stop := context.WithCancel(t.Context())
	var checking sync.WaitGroup
	checking.Go(func() { b.check(ctx) })
	t.Cleanup(func() {
		stop()
		checking.Wait()
		b.Close()
	})
	return b
}

// check asks every 100 ms who is ready.
func (b *balancer) check(ctx context.Context) {
	for ctx.Err() == nil {
		b.mu.Lock()
		targets := slices.Clone(b.targets)
		b.mu.Unlock()
		var ready []*url.URL
		for _, target := range targets {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, target.JoinPath("/health/readiness").String(), http.NoBody)
			if err != nil {
				continue
			}
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				continue
			}
			if _ = res.Body.Close(); res.StatusCode == http.StatusOK {
				ready = append(ready, target)
			}
		}
		b.mu.Lock()
		b.ready = ready
		b.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (b *balancer) add(t *testing.T, p *process) {
	t.Helper()
	target, err := url.Parse(p.url)
	if err != nil {
		t.Fatal(err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.targets = append(b.targets, target)
}

// Two processes are replaced one after the other, while a client that tries nothing again submits jobs.
func TestARollingRestartRefusesNoRequest(t *testing.T) {
	long(t)
	database, env := server(t).URL(), []string{"KAFKA_BROKERS=" + broker(t), "SHUTDOWN_DELAY=2s"}
	b := newBalancer(t)
	begin := func() *process {
		p := start(t, database, "", env...)
		p.untilReady()
		b.add(t, p)
		return p
	}
	first := begin()
	second := begin()
	first.until("the balancer has both", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return len(b.ready) == 2
	})
	c := client.New(b.URL, first.key(), client.WithRetries(0))
	submitting, stop := context.WithCancel(t.Context())
	var ids []string
	var ended sync.WaitGroup
	ended.Go(func() {
		for submitting.Err() == nil {
			job, err := c.Submit(context.WithoutCancel(submitting), hello())
			if err != nil {
				t.Errorf("job %d was refused: %v", len(ids)+1, err)
				return
			}
			ids = append(ids, job.JobID)
		}
	})
	defer ended.Wait()
	defer stop()
	for _, old := range []*process{first, second} {
		if code := old.stop(syscall.SIGTERM); code != 0 {
			t.Errorf("it exits with %d", code)
		}
		begin()
	}
	stop()
	ended.Wait()
	if len(ids) < 10 {
		t.Errorf("only %d jobs were submitted", len(ids))
	}
	for _, id := range ids {
		if job, err := c.Get(t.Context(), id, time.Minute); err != nil || job.Status != client.Completed {
			t.Errorf("a job is %+v, %v", job, err)
		}
	}
}
