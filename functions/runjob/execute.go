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
	"github.com/jobweaver/jobweaver/shared/workerdb"
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
	given := handlers.NewAttempt(a.run, a.traceID, a.log.add, func(p jobevent.Progress) {
		p.Message = clean(p.Message, maxMessage)
		a.progress.Store(&p)
		f.beats.change()
	})
	f.pool.decideNow(a, call(ctx, handler, a, given))
	f.metrics.ran(a, time.Since(a.startedAt))
}

// call runs the handler and makes an outcome of what it returns. A panic, be it of an error's own Error
// method, fails the attempt and not the worker.
func call(ctx context.Context, h handlers.Handler, a *attempt, given *handlers.Attempt) (o workerdb.Outcome) {
	defer func() {
		if value := recover(); value != nil {
			slog.ErrorContext(ctx, "handler panicked", "panic", clean(fmt.Sprint(value), maxMessage))
			o = errorOutcome(ctx, a, &handlers.Failure{
				Code: string(apierror.Panic), Message: fmt.Sprintf("panic: %v\n\n%s", value, debug.Stack()), Retryable: true,
			})
		}
	}()
	result, err := h(ctx, given)
	if err != nil {
		return errorOutcome(ctx, a, err)
	}
	return resultOutcome(a, result)
}

func isEnd(cause error) bool {
	return errors.Is(cause, handlers.ErrTimeout) || errors.Is(cause, handlers.ErrCancelled) ||
		errors.Is(cause, handlers.ErrStopping) || errors.Is(cause, handlers.ErrLost)
}
