package runjob

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/jobweaver/jobweaver/functions/runjob/handlers"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/workerdb"
)

// BenchmarkPool is the worker's own share of an attempt that does nothing: from its claim's answer to
// its outcome's being in the store.
func BenchmarkPool(b *testing.B) {
	registry := handlers.NewRegistry()
	if err := registry.Register("NOTHING", nil, func(context.Context, *handlers.Attempt) (handlers.Result, error) {
		return handlers.Result{Output: json.RawMessage(`{}`)}, nil
	}); err != nil {
		b.Fatal(err)
	}
	f := &Function{
		cfg: Config{PoolSize: 12}, registry: registry, beats: newBeats(), wake: make(chan struct{}, 1), finished: newIntake[finished](),
	}
	f.pool = newPool(12, 100, time.Hour, f.decided, f.poolChanged)
	f.metrics, _ = newMetrics(f, prometheus.NewRegistry())
	f.pool.beaten(f.pool.clock.now(), 0)
	f.pool.beaten(f.pool.clock.now(), 0)
	f.startPool(b.Context())
	var id uuid.UUID
	b.ReportAllocs()
	for n := 0; n < b.N; {
		var batch []*attempt
		for ; n < b.N && len(batch) < 100; n++ {
			id[0], id[1], id[2], id[3] = byte(n>>24), byte(n>>16), byte(n>>8), byte(n)
			run := jobevent.Run{JobID: id, Attempt: 1, JobType: "NOTHING", TimeoutMs: 60_000}
			batch = append(batch, &attempt{run: run, traceID: id})
		}
		f.pool.add(batch, f.pool.now())
		for left := len(batch); left > 0; {
			settled := f.finished.take(maxBatch)
			for i := range settled {
				settled[i].outcome.Kind = workerdb.Completed
			}
			f.forget(b.Context(), settled)
			left -= len(settled)
		}
	}
	b.StopTimer()
	f.pool.stop()
}

func TestAQuickPoolMayHoldMore(t *testing.T) {
	t.Parallel()
	p := newPool(12, 100, time.Hour, func(finished) {}, func(int) {})
	p.beaten(p.clock.now(), 0)
	p.beaten(p.clock.now(), 0)
	hold := func(n, bytes int) {
		var batch []*attempt
		for range n {
			batch = append(batch, &attempt{run: jobevent.Run{JobID: uuid.New(), Attempt: 1, Payload: make([]byte, bytes)}})
		}
		p.add(batch, p.now())
	}
	if got := p.room(); got != 112 {
		t.Errorf("idle: room for %d, want the slots and the places", got)
	}
	now := time.Now()
	for range 5000 {
		p.meter.start(now)
		p.meter.finish(now, now.Add(20*time.Millisecond)) // 600 a second on 12 slots
	}
	p.heartbeat(now)
	if got := p.room(); got != 172 {
		t.Errorf("attempts of 20 ms: room for %d, want what 100 ms get through beyond the places", got)
	}
	hold(80, 0)
	if got := p.room(); got != 92 {
		t.Errorf("half of it held: room for %d", got)
	}
	hold(1, maxAheadBytes)
	if got := p.room(); got != 0 {
		t.Errorf("large payloads held: room for %d, want none beyond the places", got)
	}
	quick := newPool(12, 100, time.Hour, func(finished) {}, func(int) {})
	quick.beaten(quick.clock.now(), 0)
	quick.beaten(quick.clock.now(), 0)
	for range 5000 {
		quick.meter.start(now)
		quick.meter.finish(now, now)
	}
	quick.heartbeat(now)
	if got := quick.room(); got != 112+maxAhead {
		t.Errorf("no-ops: room for %d, want %d", got, 112+maxAhead)
	}
	quick.heartbeat(now.Add(time.Second))
	quick.heartbeat(now.Add(10 * time.Second))
	if got := quick.room(); got != 112 {
		t.Errorf("idle since: room for %d", got)
	}
}

func TestOneTimerEndsWhatIsOverdue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		after := map[int64]time.Duration{} // by timeout
		began := time.Now()
		p := newPool(3, 100, time.Hour, func(f finished) {
			mu.Lock()
			defer mu.Unlock()
			after[f.attempt.run.TimeoutMs] = time.Since(began)
		}, func(int) {})
		p.beaten(p.clock.now(), 0)
		p.beaten(p.clock.now(), 0)
		var causes []error
		var slots sync.WaitGroup
		for slot := range 3 {
			slots.Go(func() {
				var last *attempt
				for {
					a, ctx := p.next(t.Context(), slot, last, workerdb.Outcome{FinishedAt: time.Now()})
					if last = a; a == nil {
						return
					}
					<-ctx.Done()
					mu.Lock()
					causes = append(causes, context.Cause(ctx))
					mu.Unlock()
				}
			})
		}
		for i, timeout := range []int64{5000, 300, 40, 700} { // the last waits for a slot
			p.add([]*attempt{{run: jobevent.Run{
				JobID: uuid.New(), Attempt: 1, TimeoutMs: timeout, Rank: time.Unix(int64(i), 0),
			}}}, p.now())
		}
		<-time.After(time.Minute)
		p.stop()
		slots.Wait()
		for timeout, want := range map[int64]time.Duration{5000: 5 * time.Second, 300: 300 * time.Millisecond,
			40: 40 * time.Millisecond, 700: 740 * time.Millisecond} {
			if got := after[timeout]; got < want || got > want+5*time.Millisecond {
				t.Errorf("timeout of %d ms: ended after %v, want %v", timeout, got, want)
			}
		}
		for _, cause := range causes {
			if !errors.Is(cause, handlers.ErrTimeout) {
				t.Errorf("ended for %v", cause)
			}
		}
	})
}
