// Package coalesce inserts the jobs of requests that arrive together in one statement.
package coalesce

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

const (
	maxJobs   = 500                   // of one statement
	maxRuns   = 2                     // statements at once
	slowAfter = 20 * time.Millisecond // after which one is not waited for any more
)

// Coalescer commits the jobs of single requests that arrive at the same time in one statement. No job waits for others
// to arrive: those that arrive while a statement runs go with the next one. A second statement runs beside the first
// only if the first is slow: with two, each has half the jobs, and at 500 jobs a second what follows costs a fifth
// more.
type Coalescer struct {
	Insert   func(context.Context, []jobstore.NewJob) ([]jobstore.Accepted, error)
	Patience time.Duration // of a statement

	mu      sync.Mutex
	waiting []*single
	runs    int
	latest  time.Time // when a statement was begun last
}

// single is the job of one request.
type single struct {
	job      jobstore.NewJob
	span     trace.Span // of the request; nil: there is no tracing
	accepted jobstore.Accepted
	err      error
	done     chan struct{}
}

// Add returns when the job is committed or refused. It may be committed even where ctx ends before.
func (t *Coalescer) Add(ctx context.Context, job jobstore.NewJob) (jobstore.Accepted, error) {
	s := &single{job: job, done: make(chan struct{})}
	if telemetry.TracingOf(ctx) != nil {
		s.span = trace.SpanFromContext(ctx)
	}
	t.mu.Lock()
	t.waiting = append(t.waiting, s)
	t.begin(context.WithoutCancel(ctx))
	t.mu.Unlock()
	select {
	case <-s.done:
		return s.accepted, s.err
	case <-ctx.Done():
		return jobstore.Accepted{}, context.Cause(ctx)
	}
}

// begin has a run insert what waits, where there is none, or none but a slow one. The caller holds the mutex.
func (t *Coalescer) begin(ctx context.Context) {
	if t.runs == 0 || t.runs < maxRuns && time.Since(t.latest) >= slowAfter {
		t.runs++
		t.latest = time.Now()
		go t.run(ctx)
	}
}

// relieve is for those who wait when a statement has become slow.
func (t *Coalescer) relieve(ctx context.Context) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting) > 0 {
		t.begin(ctx)
	}
}

// run inserts until no request waits, or another run does it.
func (t *Coalescer) run(ctx context.Context) {
	slow := time.AfterFunc(slowAfter, func() { t.relieve(ctx) })
	defer slow.Stop()
	for {
		t.mu.Lock()
		t.latest = time.Now()
		slow.Reset(slowAfter)
		n := min(len(t.waiting), maxJobs)
		batch := t.waiting[:n:n]
		t.waiting = t.waiting[n:]
		if n == 0 {
			t.waiting = nil
			t.runs--
			t.mu.Unlock()
			return
		}
		t.mu.Unlock()
		t.insertAll(ctx, batch)
	}
}

// insertAll answers each of the batch. What the database refuses for good is one's fault, and the others
// go without it.
func (t *Coalescer) insertAll(ctx context.Context, batch []*single) {
	jobs := make([]jobstore.NewJob, len(batch))
	for i, s := range batch {
		jobs[i] = s.job
	}
	bounded, cancel := context.WithTimeout(ctx, t.Patience)
	defer cancel()
	bounded, span := traced(bounded, batch)
	accepted, err := t.Insert(bounded, jobs)
	span.Done(err)
	if len(batch) > 1 && errors.Is(err, jobevent.ErrInvalid) {
		for i := range batch {
			t.insertAll(ctx, batch[i:i+1])
		}
		return
	}
	for i, s := range batch {
		if s.err = err; err == nil {
			s.accepted = accepted[i]
		}
		close(s.done)
	}
}

// traced begins the span of a statement for several requests.
func traced(ctx context.Context, batch []*single) (context.Context, *telemetry.Span) {
	if telemetry.TracingOf(ctx) == nil {
		return ctx, nil
	}
	spans := make([]trace.Span, len(batch))
	for i, s := range batch {
		spans[i] = s.span
	}
	return telemetry.TracingOf(ctx).Together(ctx, "insert jobs", spans)
}
