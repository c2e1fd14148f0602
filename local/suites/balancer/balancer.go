// Package balancer sends each request to the process that is ready, as a load balancer in front of a jobweaver serve
// and its standby does.
package balancer

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jobweaver/jobweaver/shared/retry"
)

const (
	probeEvery  = 100 * time.Millisecond
	probeWithin = time.Second // a frozen process accepts connections, and answers nothing
)

// Balancer is a running load balancer.
type Balancer struct {
	URL string

	server  *httptest.Server
	stop    context.CancelFunc
	probing sync.WaitGroup
}

// Start starts a load balancer of processes at these addresses. While none is ready, it answers 503 as they do.
func Start(processes ...string) *Balancer {
	ctx, stop := context.WithCancel(context.Background())
	b := &Balancer{stop: stop}
	to, ready := make([]*url.URL, len(processes)), make([]atomic.Bool, len(processes))
	for i, address := range processes {
		var err error
		if to[i], err = url.Parse(address); err != nil {
			panic(err) // the caller has made it
		}
		b.probing.Go(func() {
			for retry.Pause(ctx, probeEvery) {
				ready[i].Store(Probe(ctx, address, "readiness") == nil)
			}
		})
	}
	b.server = httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to[0])
			for i := range to {
				if ready[i].Load() {
					r.SetURL(to[i])
					return
				}
			}
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusServiceUnavailable) },
	})
	b.URL = b.server.URL
	return b
}

// Close stops the load balancer.
func (b *Balancer) Close() {
	b.stop()
	b.probing.Wait()
	b.server.CloseClientConnections()
	b.server.Close()
}

// Probe returns an error unless a probe, readiness or liveness, of the process at an address gets its 200.
func Probe(ctx context.Context, address, which string) error {
	ctx, cancel := context.WithTimeout(ctx, probeWithin)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"/health/"+which, http.NoBody)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s of %s: %s", which, address, res.Status)
	}
	return nil
}
