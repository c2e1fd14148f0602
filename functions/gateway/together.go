package gateway

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

const (
	togetherJobs = 500 // of one statement
	togetherRuns = 2   // statements at once: one is prepared while the other commits
)

// together commits the jobs of single requests that come at the same time in one statement. Nobody waits
// for company: what has come while the statements before were under way goes with the next.
type together struct {
	insert   func(context.Context, []apidb.NewJob) ([]apidb.Accepted, error)
	patience time.Duration // of a statement

	mu      sync.Mutex
	waiting []*single
	runs    int
}

// single is the job of one request.
type single struct {
	job      apidb.NewJob
	span     trace.Span // of the request; nil: there is no tracing
	accepted apidb.Accepted
	err      error
	done     chan struct{}
}

// add returns when the job is committed or refused. It may be committed even where ctx ends before.
func (t *together) add(ctx context.Context, job apidb.NewJob) (apidb.Accepted, error) {
	s := &single{job: job, done: make(chan struct{})}
	if telemetry.TracingOf(ctx) != nil {
		s.span = trace.SpanFromContext(ctx)
	}
	t.mu.Lock()
	t.waiting = append(t.waiting, s)
	if t.runs < togetherRuns {
		t.runs++
		go t.run(context.WithoutCancel(ctx))
	}
	t.mu.Unlock()
	select {
	case <-s.done:
		return s.accepted, s.err
	case <-ctx.Done():
		return apidb.Accepted{}, context.Cause(ctx)
	}
}

// run inserts until nobody waits.
func (t *together) run(ctx context.Context) {
	for {
		t.mu.Lock()
		n := min(len(t.waiting), togetherJobs)
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
func (t *together) insertAll(ctx context.Context, batch []*single) {
	jobs := make([]apidb.NewJob, len(batch))
	for i, s := range batch {
		jobs[i] = s.job
	}
	bounded, cancel := context.WithTimeout(ctx, t.patience)
	defer cancel()
	bounded, span := traced(bounded, batch)
	accepted, err := t.insert(bounded, jobs)
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
