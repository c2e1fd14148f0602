package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/jobweaver/jobweaver/local/load/figures"
	"github.com/jobweaver/jobweaver/local/load/proctree"
	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/client/durable"
	"github.com/jobweaver/jobweaver/shared/client/worker"
)

const (
	asksAlone   = 300 // jobs, one after the other, whose events are there
	eventType   = "com.example.bench"
	senders     = 8
	waitsWithin = 5 * time.Minute  // for all jobs to wait, or to end
	fullWithin  = 3 * time.Second  // for jobs to take all slots
	quietAfter  = 12 * time.Second // the worker's timer of an attempt keeps its memory for 10 s
)

// awaited names the event for which a job waits.
type awaited struct {
	Key string `json:"key"`
}

var (
	waitTask = client.Task[awaited, any]{Type: "BENCH.WAITS"}
	holdTask = client.Task[awaited, any]{Type: "BENCH.HOLDS"} // keeps its slot until the bench lets it go
)

// waits measures what an event costs that is there when a handler asks for it, and what jobs cost that wait for one.
func (b *bench) waits(ctx context.Context) error {
	b.pulls = true
	defer func() { b.pulls = false }()
	return b.withSystem(ctx, b.server, nil, func(sys *system) error {
		if err := b.warm(ctx, sys); err != nil {
			return err
		}
		r := &waitRun{bench: b, sys: sys, api: client.New(sys.URL, ""), changed: make(chan struct{}, 1)}
		r.result.Jobs, r.result.Slots = b.Waiting, kitSlots
		return r.work(ctx)
	})
}

// waitRun runs the worker in this process, whose heap it measures.
type waitRun struct {
	*bench
	sys    *system
	api    *client.Client
	result figures.Waits

	changed chan struct{} // has a value after a handler has asked, or has begun to hold

	mu            sync.Mutex
	took          []time.Duration // of the asks whose events were there
	waiting, woke int             // asks whose event was not there, and that got it
	holding, held int             // now, and at once at most
	free          chan struct{}   // closed: jobs hold their slots no longer
}

func (r *waitRun) work(ctx context.Context) error {
	working, stop := context.WithCancel(ctx)
	w := worker.New(r.api, worker.Options{Slots: kitSlots})
	worker.HandleTask(w, &waitTask, r.wait)
	worker.HandleTask(w, &holdTask, r.hold)
	ended := make(chan error, 1)
	go func() { ended <- w.Run(working) }()
	err := r.measure(ctx, w.Ready())
	stop()
	if err := errors.Join(err, <-ended); err != nil {
		return err
	}
	r.results.Waits = &r.result
	return nil
}

func (r *waitRun) measure(ctx context.Context, ready <-chan struct{}) error {
	select {
	case <-ready:
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := r.askAlone(ctx); err != nil {
		return err
	}
	for _, counts := range []bool{false, true} { // the first time connections and buffers grow
		if err := r.waitTogether(ctx, counts); err != nil {
			return err
		}
	}
	return nil
}

// wait is the handler of the jobs that wait.
func (r *waitRun) wait(ctx context.Context, a *worker.Attempt, in awaited) (any, error) {
	began := time.Now()
	_, err := worker.Receive(ctx, a, "event", worker.EventWait{
		Type: eventType, Match: map[string]any{"key": in.Key},
	})
	took := time.Since(began)
	var snooze *durable.Snooze
	r.note(func() {
		switch {
		case errors.As(err, &snooze):
			r.waiting++
		case err == nil && a.Attempt == 1:
			r.took = append(r.took, took)
		case err == nil:
			r.woke++
		}
	})
	return nil, err
}

// hold is the handler of the jobs that keep their slots.
func (r *waitRun) hold(ctx context.Context, _ *worker.Attempt, _ awaited) (any, error) {
	r.note(func() {
		r.holding++
		r.held = max(r.held, r.holding)
	})
	defer r.note(func() { r.holding-- })
	select {
	case <-r.free:
		return nil, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (r *waitRun) note(what func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	what()
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// until waits until reached is true, or for d.
func (r *waitRun) until(ctx context.Context, d time.Duration, reached func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	for {
		r.mu.Lock()
		is := reached()
		r.mu.Unlock()
		if is {
			return nil
		}
		select {
		case <-r.changed:
		case <-ctx.Done():
			return fmt.Errorf("not all jobs have begun within %s: %w", d, ctx.Err())
		}
	}
}

// askAlone measures in the handler how long it takes to get an event that is there.
func (r *waitRun) askAlone(ctx context.Context) error {
	for i := range asksAlone {
		in := awaited{"alone " + strconv.Itoa(i)}
		if err := r.send(ctx, in); err != nil {
			return err
		}
		if _, err := waitTask.Submit(ctx, r.api, in); err != nil {
			return err
		}
		if err := r.until(ctx, time.Minute, func() bool { return len(r.took)+r.waiting > i }); err != nil {
			return err
		}
	}
	if r.waiting > 0 {
		return fmt.Errorf("%d of %d jobs did not find the event that was sent before them", r.waiting, asksAlone)
	}
	r.result.Asked, r.took = figures.Distribute(r.took), nil
	r.printf("a handler gets an event that is there after %s", r.result.Asked)
	return nil
}

func (r *waitRun) send(ctx context.Context, in awaited) error {
	data, err := json.Marshal(in)
	if err != nil {
		return err
	}
	_, err = r.api.SendEvent(ctx, client.CloudEvent{ID: in.Key, Source: "/bench", Type: eventType, Data: data})
	return err
}

// waitTogether lets many jobs wait at once, measures what they take, and wakes them.
func (r *waitRun) waitTogether(ctx context.Context, counts bool) error {
	all := make([]awaited, r.Waiting)
	for i := range all {
		all[i].Key = fmt.Sprintf("together %v %d", counts, i)
	}
	r.waiting, r.woke, r.held = 0, 0, 0
	heap, functions, err := r.memory(ctx)
	if err != nil {
		return err
	}
	if _, err := waitTask.SubmitAll(ctx, r.api, all); err != nil {
		return err
	}
	if err := r.until(ctx, waitsWithin, func() bool { return r.waiting >= len(all) }); err != nil {
		return err
	}
	heapThen, functionsThen, err := r.memory(ctx)
	if err != nil {
		return err
	}
	if err := r.fill(ctx); err != nil {
		return err
	}
	began := time.Now()
	if err := errors.Join(r.sendAll(ctx, all), r.ended(ctx)); err != nil {
		return err
	}
	took := time.Since(began)
	n := float64(len(all))
	r.result.Taken, r.result.Seconds, r.result.Woken = kitSlots-r.held, took.Seconds(), r.woke
	r.result.WorkerBytes, r.result.FunctionsBytes = float64(heapThen-heap)/n, float64(functionsThen-functions)/n
	if counts {
		r.printf("%d jobs wait in %d slots; each takes %.0f bytes of the worker and %.0f of the functions",
			len(all), r.result.Taken, r.result.WorkerBytes, r.result.FunctionsBytes)
		r.printf("%d jobs woke, all ended after %.1f s", r.woke, took.Seconds())
	}
	return nil
}

// memory returns the heap of this process and the memory of the functions, once they are quiet.
func (r *waitRun) memory(ctx context.Context) (heap, functions int64, err error) {
	if err := pass(ctx, quietAfter); err != nil {
		return 0, 0, err
	}
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what the first one has found only now unused, by finalizers
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc), proctree.Memory(r.sys.Pid()), nil //nolint:gosec // no heap is so large
}

// fill counts the slots that the waiting jobs leave: other jobs take all of them at once.
func (r *waitRun) fill(ctx context.Context) error {
	r.free = make(chan struct{})
	if _, err := holdTask.SubmitAll(ctx, r.api, make([]awaited, kitSlots)); err != nil {
		return err
	}
	_ = r.until(ctx, fullWithin, func() bool { return r.held == kitSlots }) // fewer are counted as well
	close(r.free)
	return r.until(ctx, waitsWithin, func() bool { return r.holding == 0 })
}

func (r *waitRun) sendAll(ctx context.Context, all []awaited) error {
	sending, ctx := errgroup.WithContext(ctx)
	sending.SetLimit(senders)
	for _, in := range all {
		sending.Go(func() error { return r.send(ctx, in) })
	}
	return sending.Wait()
}

// ended waits until no job is left.
func (r *waitRun) ended(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, waitsWithin)
	defer cancel()
	for {
		open, err := r.open(ctx)
		if err != nil || open == "" {
			return err
		}
		if err := pass(ctx, 200*time.Millisecond); err != nil {
			return fmt.Errorf("job %s has not ended: %w", open, err)
		}
	}
}

// open returns a job that has not ended; empty: there is none.
func (r *waitRun) open(ctx context.Context) (string, error) {
	for job, err := range r.api.List(ctx, client.Filter{Status: []string{
		client.Scheduled, client.Pending, client.Queued, client.Running, client.Waiting, client.Retrying,
	}}) {
		if err != nil {
			return "", err
		}
		return job.JobID + " " + job.Status, nil
	}
	return "", nil
}
