// Package coalesce inserts jobs of concurrent requests in one statement.
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
	maxJobs   = 500                   // in one statement
	maxRuns   = 2                     // concurrent statements
	slowAfter = 20 * time.Millisecond // after which waiting jobs no longer wait for a statement to end
)

// Coalescer commits the jobs of concurrent single submits in one statement. No job waits for others to arrive: jobs
// that arrive while a statement runs go with the next one. A second statement runs beside the first only if the first
// is slow: two statements would have half the jobs each, which at 500 jobs a second makes the work after them a fifth
// more expensive.
type Coalescer struct {
	Insert   func(context.Context, []jobstore.NewJob) ([]jobstore.Accepted, error)
	Patience time.Duration // for a statement

	mu      sync.Mutex
	waiting []*single
	runs    int
	latest  time.Time // when the latest statement began
}

// single is the job of one request.
type single struct {
	job      jobstore.NewJob
	span     trace.Span // of the request; nil: there is no tracing
	accepted jobstore.Accepted
	err      error
	done     chan struct{}
}

// Add returns when the job is committed or refused. The job may be committed even if ctx ends first.
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

// begin starts a run if jobs wait and no run is going, or only a slow one. The caller holds the mutex.
func (t *Coalescer) begin(ctx context.Context) {
	if t.runs == 0 || t.runs < maxRuns && time.Since(t.latest) >= slowAfter {
		t.runs++
		t.latest = time.Now()
		go t.run(ctx)
	}
}

// relieve starts a second run for waiting jobs when a statement has become slow.
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

// insertAll inserts a batch and gives each job its result. If the database refuses the statement for good, one job is
// at fault; each is then inserted alone.
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
