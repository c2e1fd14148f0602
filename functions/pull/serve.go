package pull

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/pullwire"
)

// maxBody is more than a gateway receives: results are a little longer when they are encoded again.
const maxBody = 2*apibody.MaxSettleBytes + 1<<20

func (f *Function) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+pullwire.ClaimPath, f.fromGateway(f.serveClaim))
	mux.HandleFunc("POST "+pullwire.HeartbeatPath, f.fromGateway(serve(func(_ context.Context, b pullwire.Heartbeat) any {
		return f.heartbeat(b)
	})))
	mux.HandleFunc("POST "+pullwire.CheckpointPath, f.fromGateway(serve(
		func(ctx context.Context, c pullwire.Checkpoints) any { return f.save(ctx, c) },
	)))
	mux.HandleFunc("POST "+pullwire.SettlePath, f.fromGateway(serve(func(ctx context.Context, s pullwire.Settle) any {
		return f.settle(ctx, s)
	})))
	return mux
}

// fromGateway refuses clients without the gateways' secret.
func (f *Function) fromGateway(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !pullwire.IsSecret(f.keys, r.Header.Get(pullwire.SecretHeader)) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		next(w, r)
	}
}

func serve[In any](do func(context.Context, In) any) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var in In
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		answer(w, do(r.Context(), in))
	}
}

func answer(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	_ = pullwire.Write(w, body) // who does not read it heartbeats no more
}

func (f *Function) serveClaim(w http.ResponseWriter, r *http.Request) {
	var asked pullwire.Claim
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	select {
	case <-f.stopping:
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	default:
	}
	f.metrics.claims.Inc()
	c := f.open(asked)
	if c == nil {
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	f.waitFor(r.Context(), c)
	got := f.close(c)
	switch {
	case r.Context().Err() != nil:
		f.takeBack(got)
		return
	case c.ready:
		w.WriteHeader(http.StatusAccepted)
		return
	}
	handed := f.hand(got, asked.Instance)
	if len(handed.Attempts) == 0 {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	f.metrics.handed.Add(float64(len(handed.Attempts)))
	answer(w, handed)
}

// waitFor waits until a claim has attempts, its time is over, or its request is gone.
func (f *Function) waitFor(ctx context.Context, c *openClaim) {
	over := time.NewTimer(c.Wait)
	defer over.Stop()
	var gathered <-chan time.Time
	late := false
	for {
		select {
		case <-c.wake:
		case <-over.C:
			late = true
		case <-gathered:
			return
		case <-ctx.Done():
			return
		case <-f.stopping:
			return
		}
		switch got, kept := f.filled(c); {
		case kept == 0 && (got > 0 || late):
			return
		case got > 0 && gathered == nil:
			gathered = time.After(f.timing.gather)
		}
	}
}

// filled returns how many attempts a claim has (a ready peek has one), and for how many it keeps places.
func (f *Function) filled(c *openClaim) (got, kept int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c.ready {
		return 1, 0
	}
	return len(c.got), c.kept
}
