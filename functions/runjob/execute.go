package runjob

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/jobweaver/jobweaver/functions/runjob/handlers"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// work is one slot of the pool: it runs attempts until the pool stops.
func (f *Function) work(ctx context.Context) {
	for {
		a, ctx := f.pool.next(ctx)
		if a == nil {
			return
		}
		f.execute(ctx, a)
		f.pool.returned(a)
	}
}

// execute runs an attempt's handler and decides its outcome by what that returns, unless it was decided
// before: at its timeout, or some time after its cancel, whether the handler minds its context or not.
func (f *Function) execute(ctx context.Context, a *attempt) {
	handler := f.registry.Find(a.run.JobType)
	if handler == nil {
		f.pool.decideNow(a, failedOutcome(a, &handlers.Failure{
			Code: string(apierror.UnknownJobType), Message: fmt.Sprintf("no handler for job type %q", a.run.JobType),
		}))
		return
	}
	ctx = telemetry.With(ctx, telemetry.FieldJobID, a.run.JobID.String(), telemetry.FieldTraceID, a.traceID.String(),
		"attempt", a.run.Attempt)
	timer := time.AfterFunc(a.timeout(), func() {
		f.pool.decideNow(a, endedOutcome(a, handlers.ErrTimeout))
		a.end(handlers.ErrTimeout)
	})
	defer timer.Stop()
	result, err := call(ctx, handler, handlers.NewAttempt(a.run, a.traceID, a.log.add, func(p jobevent.Progress) {
		p.Message = clean(p.Message, maxMessage)
		a.progress.Store(&p)
		f.beats.change()
	}))
	outcome := resultOutcome(a, result)
	if err != nil {
		outcome = errorOutcome(ctx, a, err)
	}
	f.pool.decideNow(a, outcome)
	f.metrics.ran(a, time.Since(a.startedAt))
}

// panicked is a handler's panic as an error.
type panicked struct {
	value any
	stack []byte
}

func (p *panicked) Error() string { return fmt.Sprintf("panic: %v\n\n%s", p.value, p.stack) }

func call(ctx context.Context, h handlers.Handler, a *handlers.Attempt) (r handlers.Result, err error) {
	finished := false
	defer func() {
		if finished {
			return
		}
		value := recover()
		err = &panicked{value, debug.Stack()}
		slog.ErrorContext(ctx, "handler panicked", "panic", value)
	}()
	r, err = h(ctx, a)
	finished = true
	return r, err
}

func isEnd(cause error) bool {
	return errors.Is(cause, handlers.ErrTimeout) || errors.Is(cause, handlers.ErrCancelled) ||
		errors.Is(cause, handlers.ErrStopping) || errors.Is(cause, handlers.ErrLost)
}
