package runjob

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/jobweaver/jobweaver/functions/runjob/handlers"
	"github.com/jobweaver/jobweaver/functions/runjob/pool"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/workerdb"
)

// BenchmarkPool measures the worker's own share of an attempt that does nothing: from the answer to its claim until its
// outcome is in the store.
func BenchmarkPool(b *testing.B) {
	registry := handlers.NewRegistry()
	if err := registry.Register("NOTHING", nil, func(context.Context, *handlers.Attempt) (handlers.Result, error) {
		return handlers.Result{Output: json.RawMessage(`{}`)}, nil
	}); err != nil {
		b.Fatal(err)
	}
	f := &Function{
		cfg: Config{PoolSize: 12}, registry: registry, heartbeats: newHeartbeats(), wake: make(chan struct{}, 1), finished: newIntake[pool.Finished](),
	}
	f.pool = pool.New(12, 100, time.Hour, f.decided, f.poolChanged)
	f.metrics, _ = newMetrics(f, prometheus.NewRegistry())
	f.pool.Answered(f.pool.Now(), 0)
	f.pool.Answered(f.pool.Now(), 0)
	f.startPool(b.Context())
	var id uuid.UUID
	b.ReportAllocs()
	for n := 0; n < b.N; {
		var batch []*pool.Attempt
		for ; n < b.N && len(batch) < 100; n++ {
			id[0], id[1], id[2], id[3] = byte(n>>24), byte(n>>16), byte(n>>8), byte(n)
			run := jobevent.Run{JobID: id, Attempt: 1, JobType: "NOTHING", Spec: jobevent.Spec{TimeoutMs: 60_000}}
			batch = append(batch, &pool.Attempt{Run: run, TraceID: id})
		}
		f.pool.Add(batch, f.pool.Epoch())
		for left := len(batch); left > 0; {
			settled := f.finished.take(maxBatch)
			for i := range settled {
				settled[i].Outcome.Kind = workerdb.Completed
			}
			f.forget(b.Context(), settled)
			left -= len(settled)
		}
	}
	b.StopTimer()
	f.pool.Stop()
}
