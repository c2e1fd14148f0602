package httpserver

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/jobweaver/jobweaver/shared/retry"
)

// InFlight counts the requests that are under way. Knative's queue-proxy, a load balancer, or a client that knows the
// address, sends requests for some time after the stop signal: a server that closed at once would refuse them.
type InFlight struct {
	mu    sync.Mutex
	n     int
	ended time.Time // when the last one ended
}

func (f *InFlight) begin() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n++
}

func (f *InFlight) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n--
	f.ended = time.Now()
}

// left returns the time until d will have passed without a request since began, if none arrives.
func (f *InFlight) left(began time.Time, d time.Duration) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.n > 0:
		return d
	case f.ended.After(began):
		began = f.ended
	}
	return d - time.Since(began)
}

// Quiet waits until d has passed without a request, at most for the longer of d and atMost, or until ctx ends.
func (f *InFlight) Quiet(ctx context.Context, d, atMost time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, max(d, atMost))
	defer cancel()
	began := time.Now()
	for left := d; left > 0; left = f.left(began, d) {
		if !retry.Pause(ctx, left) {
			return
		}
	}
}

// Count counts all requests except those for the paths in without, such as probes. Once stopping returns true, clients
// of HTTP/1 are asked to close their connections, on which the next request would fail.
func (f *InFlight) Count(next http.Handler, stopping func() bool, without ...string) http.Handler {
	uncounted := map[string]bool{}
	for _, path := range without {
		uncounted[path] = true
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if uncounted[r.URL.Path] {
			next.ServeHTTP(w, r)
			return
		}
		f.begin()
		defer f.end()
		if stopping() && r.ProtoMajor == 1 {
			w.Header()["Connection"] = closing
		}
		next.ServeHTTP(w, r)
	})
}
