package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/jobweaver/jobweaver/local/load/apiload"
	"github.com/jobweaver/jobweaver/local/load/rig"
)

// workers are all workers that were started for rig.Queue.
type workers struct {
	mu  sync.Mutex
	all []*rig.Worker
}

func (w *workers) list() []*rig.Worker {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all[:len(w.all):len(w.all)]
}

func (w *workers) add(worker *rig.Worker) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, worker)
}

// done returns how many handlers have ended.
func (w *workers) done() int {
	n := 0
	for _, worker := range w.list() {
		n += worker.Done()
	}
	return n
}

// instants returns when handlers ended.
func (w *workers) instants() (all []time.Time, err error) {
	for _, worker := range w.list() {
		instants, err := worker.Instants()
		if err != nil {
			return nil, err
		}
		all = append(all, instants...)
	}
	return all, nil
}

// begin starts a worker, and returns once it has completed a job.
func (w *workers) begin(ctx context.Context, sys *system, name string, slots, queue int) (*rig.Worker, error) {
	worker, err := rig.StartWorker(rig.WorkerConfig{
		Dir: sys.dir, Name: name, Server: sys.server, Broker: sys.broker, Slots: slots, SlotQueue: queue,
	})
	if err != nil {
		return nil, err
	}
	w.add(worker)
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	if err := until(ctx, func() bool { return worker.Done() > 0 }); err != nil {
		return worker, fmt.Errorf("wait for %s to do something: %w", name, err)
	}
	return worker, nil
}

// until repeats a check until it holds.
func until(ctx context.Context, true func() bool) error {
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for !true() {
		select {
		case <-look.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// pass waits while the measurement continues.
func pass(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// feeder keeps a fixed number of jobs waiting in rig.Queue by replacing completed ones.
type feeder struct {
	api     *apiload.API
	server  *rig.Server
	request string
	batch   int
	clients int
	waiting int
	keys    int // fairness keys, which the jobs have in turn; 0: none

	handedIn atomic.Int64
	keyed    atomic.Int64 // jobs that got a key
}

// body returns a batch of n jobs.
func (f *feeder) body(request string, n int) []byte {
	if f.keys == 0 {
		return apiload.Batch(request, n)
	}
	from := int(f.keyed.Add(int64(n))) - n
	return apiload.KeyedBatch(request, n, from, f.keys)
}

// fill submits n jobs and returns once the scheduler has all of them.
func (f *feeder) fill(ctx context.Context, request string, n int) error {
	body := func(n int) []byte { return f.body(request, n) }
	last, err := f.api.FillWith(ctx, body, n, f.clients, f.batch)
	if err != nil {
		return err
	}
	last = last[max(0, len(last)-4*f.clients):]
	for {
		there, err := f.server.Scheduled(ctx, last)
		if err != nil || there == len(last) {
			return err
		}
		if err := pass(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
}

// run feeds until ctx ends.
func (f *feeder) run(ctx context.Context, done func() int) error {
	all, feeding := errgroup.WithContext(ctx)
	for range f.clients {
		all.Go(func() error {
			for {
				if err := until(feeding, func() bool { return f.take(done()) }); err != nil {
					return nil //nolint:nilerr // the end of feeding
				}
				_, err := f.api.SubmitBatch(feeding, f.body(f.request, f.batch), f.batch)
				if errors.Is(err, apiload.ErrRefused) {
					f.handedIn.Add(-int64(f.batch))
				} else if err != nil && feeding.Err() == nil {
					return fmt.Errorf("feed: %w", err)
				}
			}
		})
	}
	return all.Wait()
}

// take reports whether one more batch is due, and counts it.
func (f *feeder) take(done int) bool {
	for {
		handedIn := f.handedIn.Load()
		if int(handedIn)-done >= f.waiting {
			return false
		}
		if f.handedIn.CompareAndSwap(handedIn, handedIn+int64(f.batch)) {
			return true
		}
	}
}
