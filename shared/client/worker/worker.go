// Package worker runs handlers as a pull worker: it claims attempts from a gateway, runs them, and sends their results.
// It needs outgoing HTTP and an API key with the role work (docs/pull-workers.md).
//
// Why: docs/decisions/workers.md#worker-kits-send-heartbeats-from-a-thread-and-run-a-job-once-at-a-time
package worker

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	mathrand "math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/client/durable"
	"github.com/jobweaver/jobweaver/shared/client/jobrun"
)

// Options configure a Worker. A zero field has a default.
type Options struct {
	Queues []string      // the queues whose attempts it claims; by default all queues that its key covers
	Slots  int           // attempts at once, at most 500; 10 by default
	Name   string        // by default the machine's name and a random text
	Grace  time.Duration // how long handlers may continue when Run must stop; 25 s by default
	Logger *slog.Logger  // slog.Default by default
}

const (
	heartbeatEvery  = 3 * time.Second
	heartbeatWithin = 3 * time.Second  // after a heartbeat that hangs there is time for two more
	silence         = 10 * time.Second // the time without an answered heartbeat after which an attempt may run elsewhere
	claimWait       = 10 * time.Second
	claimLate       = 10 * time.Second       // for the answer after the wait; without one the gateway stands still
	settleTime      = 20 * time.Second       // longer than the gateway takes to answer 503
	givenBackFor    = 30 * time.Second       // at most, an attempt whose job still runs as another one
	lastAnswer      = 500 * time.Millisecond // for the answer to a claim that is held when the worker stops
	maxSlots        = 500                    // also the most attempts in a claim, a heartbeat and a settle
	maxHeartbeatLog = 128 << 10              // bytes of log lines in a heartbeat, which has at most 1 MiB
	maxSettle       = 2 << 20                // bytes of results from which a settle, of at most 4 MiB, gets no more
)

// Worker runs the handlers of some job types. Register them with Handle, then call Run once.
type Worker struct {
	c        *client.Client
	o        Options
	handlers map[string]handler
	tasks    map[string]client.JobTypeDefinition // those of the handlers that run a Task

	middleware []jobrun.Middleware

	ready    chan struct{} // closed when the gateway knows the tasks
	slots    chan struct{} // has a value for each slot in use
	running  sync.WaitGroup
	sending  chan struct{} // has a value during a heartbeat: one at a time, so that log lines keep their order
	settling chan struct{} // has a value during a settle: attempts that end meanwhile are settled together

	mu    sync.Mutex
	held  map[string]*Attempt // by token, until the result is stored or no longer counts
	runs  map[string]*Attempt // by job, while its handler runs
	ended []*Attempt          // the attempts in held that must be settled
}

// New makes a worker.
func New(c *client.Client, o Options) *Worker {
	host, _ := os.Hostname()
	o.Name = cmp.Or(o.Name, host+"-"+strings.ToLower(rand.Text()[:6]))
	o.Logger = cmp.Or(o.Logger, slog.Default()).With("worker", o.Name)
	o.Slots, o.Grace = min(max(cmp.Or(o.Slots, 10), 1), maxSlots), cmp.Or(o.Grace, 25*time.Second)
	return &Worker{
		c: c, o: o, handlers: map[string]handler{}, tasks: map[string]client.JobTypeDefinition{},
		held: map[string]*Attempt{}, runs: map[string]*Attempt{},
		ready: make(chan struct{}), slots: make(chan struct{}, o.Slots),
		sending: make(chan struct{}, 1), settling: make(chan struct{}, 1),
	}
}

// Use lets middleware run around all handlers; the first is the outermost. Call it before Run.
func (w *Worker) Use(all ...jobrun.Middleware) { w.middleware = append(w.middleware, all...) }

// Run claims attempts and runs them until ctx ends, or until the gateway refuses a claim for good, which is the error.
// Then it claims no more and lets handlers continue for Grace. After that their contexts end with ErrStopping, and
// attempts that they do not complete are given back: their jobs run again at once, and no retry is counted. Run returns
// after the last handler, even if a handler ignores its context: while it runs, its job must not run again.
func (w *Worker) Run(ctx context.Context) error {
	life, end := context.WithCancel(context.WithoutCancel(ctx)) // of requests and handlers
	var heartbeats sync.WaitGroup
	heartbeats.Go(func() {
		for every := time.NewTicker(heartbeatEvery); life.Err() == nil; {
			select {
			case <-life.Done():
			case <-every.C:
				w.heartbeat(life, nil)
			}
		}
	})
	err := w.describe(ctx)
	if err == nil {
		close(w.ready)
		err = w.claim(ctx, life)
	}
	grace := time.AfterFunc(w.o.Grace, func() {
		for _, a := range w.inHand() {
			a.cancel(ErrStopping)
		}
	})
	w.running.Wait()
	grace.Stop()
	end()
	heartbeats.Wait()
	return err
}

// Ready returns a channel that is closed when the gateway knows the tasks of the worker, so that their jobs are
// accepted. It stays open if Run ends before.
func (w *Worker) Ready() <-chan struct{} { return w.ready }

// describe sends the definitions of the tasks, so that the gateway accepts and checks their jobs.
func (w *Worker) describe(ctx context.Context) error {
	for _, jobType := range slices.Sorted(maps.Keys(w.tasks)) {
		for failed := 0; ctx.Err() == nil; failed++ {
			err := w.c.DescribeJobType(ctx, jobType, w.tasks[jobType])
			if err == nil {
				break
			}
			if isFinal(err) {
				return fmt.Errorf("describe job type %s: %w", jobType, err)
			}
			if ctx.Err() == nil {
				w.o.Logger.WarnContext(ctx, "a job type cannot be described, and is described again", "error", err)
			}
			pause(ctx, failed)
		}
	}
	return nil
}

// claim claims attempts for all free slots, until ctx ends. The claim that is held then may have been answered already,
// and the jobs in the answer would run again only after 15 s. So claim waits a moment for the answer, and gives back
// the attempts in it.
func (w *Worker) claim(ctx, life context.Context) error {
	asking, cancel := context.WithCancel(life)
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(lastAnswer, cancel) })()
	types := slices.Sorted(maps.Keys(w.handlers))
	for failed := 0; ; {
		slots := w.take(ctx)
		if slots == 0 {
			return nil
		}
		within, done := context.WithTimeout(asking, claimWait+claimLate) // a connection may break without a sign
		sent := time.Now().Round(0)                                      // the wall clock also runs while a machine sleeps
		attempts, err := w.c.Claim(within, client.WorkClaim{
			Worker: w.o.Name, Types: types, Queues: w.o.Queues, Slots: slots, Wait: claimWait,
		})
		done()
		if time.Since(sent) > claimWait+claimLate {
			attempts = nil
		}
		for range slots - len(attempts) {
			<-w.slots
		}
		for _, got := range attempts {
			w.start(ctx, life, got)
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			failed = 0
			continue
		case isFinal(err):
			return fmt.Errorf("claim attempts: %w", err)
		case failed == 0:
			w.o.Logger.WarnContext(ctx, "claim failed, and is repeated", "error", err)
		}
		pause(ctx, failed)
		failed++
	}
}

// take waits for a free slot, and takes all free slots. 0: ctx has ended.
func (w *Worker) take(ctx context.Context) int {
	select {
	case <-ctx.Done():
		return 0
	case w.slots <- struct{}{}:
	}
	for n := 1; ; n++ {
		select {
		case w.slots <- struct{}{}:
		default:
			return n
		}
	}
}

// isFinal reports whether the gateway has refused a request and would refuse it again.
func isFinal(err error) bool {
	var refused *client.Error
	return errors.As(err, &refused) && refused.Status < http.StatusInternalServerError &&
		refused.Status != http.StatusTooManyRequests && refused.Status != http.StatusRequestTimeout
}

// pause waits after the n-th failure, counted from 0: 1 to 8 s, half of it random.
func pause(ctx context.Context, n int) {
	d := time.Second << min(n, 3)
	select {
	case <-ctx.Done():
	case <-time.After(d/2 + mathrand.N(d/2)):
	}
}

// start runs an attempt until its result is stored or no longer counts. Until then it keeps its slot, and heartbeats
// list it.
func (w *Worker) start(ctx, life context.Context, got client.WorkAttempt) {
	a := newAttempt(life, got)
	a.Checkpoint = durable.New(got.Checkpoint, func(number int64, data json.RawMessage) error {
		return a.save(w, number, data)
	})
	a.Checkpoint.KeepSteps(a.steps(w))
	a.Ask = func(ctx context.Context, waits []client.WorkWait) (client.WorkWaitAnswer, error) {
		return a.ask(ctx, w, waits)
	}
	w.mu.Lock()
	w.held[a.Token] = a
	w.mu.Unlock()
	w.running.Go(func() {
		defer w.finish(life, a) // even if the handler ends its goroutine
		if other := w.runOf(a); other != nil {
			a.err = a.givenBack(w, other)
			return
		}
		defer w.hasRun(a)
		defer a.awaitSteps()
		if a.err = ErrStopping; ctx.Err() == nil {
			a.run(w)
		}
	})
}

// runOf returns the attempt of the same job whose handler still runs: it ignores that it should have ended. If there is
// none, a is now the attempt that runs.
func (w *Worker) runOf(a *Attempt) *Attempt {
	w.mu.Lock()
	defer w.mu.Unlock()
	if other := w.runs[a.JobID]; other != nil {
		return other
	}
	w.runs[a.JobID] = a
	return nil
}

func (w *Worker) hasRun(a *Attempt) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.runs, a.JobID)
}

// call runs an attempt's handler within the middleware.
func (w *Worker) call(ctx context.Context, a *Attempt) (output json.RawMessage, err error) {
	err = jobrun.Run(ctx, w.middleware, a.Info, func(ctx context.Context) (err error) {
		output, err = w.handlers[a.JobType](ctx, a)
		return err
	})
	return output, err
}

// Call runs a handler as an attempt of a worker does, for a test: package workertest calls it. waits is not 0 if the
// handler returned a WaitFor.
func (w *Worker) Call(ctx context.Context, a *Attempt) (output json.RawMessage, waits time.Duration, err error) {
	if w.handlers[a.JobType] == nil {
		return nil, 0, fmt.Errorf("the worker has no handler for job type %q", a.JobType)
	}
	output, err = w.call(ctx, a)
	if wait := waiting(0); errors.As(err, &wait) {
		return nil, time.Duration(wait), nil
	}
	return output, 0, err
}

func (w *Worker) finish(life context.Context, a *Attempt) {
	w.heartbeat(life, a) // sends its log lines: after it is settled it would be too late
	a.result = a.resultOf()
	w.mu.Lock()
	w.ended = append(w.ended, a)
	w.mu.Unlock()
	for n := 0; a.alive.Err() == nil; n++ {
		if w.settle(life); a.alive.Err() == nil {
			pause(a.alive, n)
		}
	}
	w.mu.Lock()
	delete(w.held, a.Token)
	w.mu.Unlock()
	a.close()
	<-w.slots
}

func (w *Worker) inHand() []*Attempt {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Values(w.held))
}

// heartbeat keeps all held attempts. If only is set, heartbeat does nothing unless that attempt has something to
// report. A heartbeat and a settle may cross: then the heartbeat may be answered that an attempt is lost although its
// result is stored, or the attempt is no longer held. Neither changes anything.
func (w *Worker) heartbeat(life context.Context, only *Attempt) {
	w.sending <- struct{}{}
	defer func() { <-w.sending }()
	attempts, room := w.inHand(), maxHeartbeatLog
	if len(attempts) == 0 || only != nil && !only.hasNews() {
		return
	}
	b := client.WorkHeartbeat{Worker: w.o.Name}
	for _, a := range attempts {
		b.Attempts = append(b.Attempts, a.sign(&room))
	}
	ctx, cancel := context.WithTimeout(life, heartbeatWithin)
	defer cancel()
	sent := time.Now()
	answer, err := w.c.Heartbeat(ctx, b)
	if err != nil {
		w.o.Logger.WarnContext(ctx, "heartbeat failed", "error", err)
	}
	for i, a := range attempts {
		switch {
		case isFinal(err): // the lines are dropped, because they would be refused again
		case err != nil:
			a.restore(b.Attempts[i])
		case slices.Contains(answer.Lost, a.Token):
			a.end(ErrLost)
		case slices.Contains(answer.Cancelled, a.Token):
			a.cancel(ErrCancelled)
		default:
			a.fence.Reset(silence - time.Since(sent))
		}
	}
}

// settle sends the waiting results. Results that the gateway could not store keep waiting.
func (w *Worker) settle(life context.Context) {
	w.settling <- struct{}{}
	defer func() { <-w.settling }()
	w.mu.Lock()
	var batch []*Attempt
	var results []client.WorkResult
	bytes := 0
	w.ended = slices.DeleteFunc(w.ended, func(a *Attempt) bool { return a.alive.Err() != nil })
	for _, a := range w.ended {
		if bytes += len(a.result.Output) + 6*len(a.result.Message); len(batch) > 0 && bytes > maxSettle { // as JSON
			break
		}
		batch, results = append(batch, a), append(results, a.result)
	}
	w.mu.Unlock()
	if len(batch) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(life, settleTime)
	defer cancel()
	answers, err := w.c.Settle(ctx, w.o.Name, results...)
	if err != nil {
		w.o.Logger.WarnContext(ctx, "settle failed, and is repeated", "error", err)
		return
	}
	for i, a := range batch {
		if a.answered(answers[i]); answers[i].Error != nil {
			w.o.Logger.WarnContext(ctx, "result refused", "jobId", a.JobID, "attempt", a.Attempt, "error", answers[i].Error)
		}
	}
}
