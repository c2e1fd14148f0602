package funchost

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// visits knows whether somebody still comes. Knative's queue-proxy, a load balancer or a client with an address at hand
// sends requests for some time after a process was told to stop: who closes the door at once refuses them.
type visits struct {
	mu    sync.Mutex
	here  int       // requests under way
	ended time.Time // when the last one ended
}

func (v *visits) begin() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.here++
}

func (v *visits) end() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.here--
	v.ended = time.Now()
}

// left is how long nobody must come until there was quiet for as long as d since began.
func (v *visits) left(began time.Time, d time.Duration) time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case v.here > 0:
		return d
	case v.ended.After(began):
		began = v.ended
	}
	return d - time.Since(began)
}

// quiet waits until nobody has come for d, for at most as long as that or atMost, or until ctx ends.
func (v *visits) quiet(ctx context.Context, d, atMost time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, max(d, atMost))
	defer cancel()
	began := time.Now()
	for left := d; left > 0; left = v.left(began, d) {
		if !pause(ctx, left) {
			return
		}
	}
}

// count has requests counted but for those of who only looks, and asks who comes after the stop to come by another
// connection the next time: not here any more.
func (h *host) count(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case livenessPath, readinessPath, metricsPath:
			next.ServeHTTP(w, r)
			return
		}
		h.visits.begin()
		defer h.visits.end()
		if h.stopping.Load() && r.ProtoMajor == 1 {
			w.Header()["Connection"] = closing
		}
		next.ServeHTTP(w, r)
	})
}
