package runjob

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/jobweaver/jobweaver/functions/runjob/handlers"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/workerdb"
)

// work is one slot of the pool: it runs attempts until the pool stops.
func (f *Function) work(ctx context.Context, slot int) {
	var last *attempt
	var outcome workerdb.Outcome
	for {
		a, runs := f.pool.next(ctx, slot, last, outcome)
		if a == nil {
			return
		}
		last, outcome = a, f.execute(runs, a)
	}
}

// execute runs an attempt's handler. What that returns decides the outcome, unless it was decided
// before: at its timeout, or some time after its cancel, whether the handler minds its context or not.
func (f *Function) execute(ctx context.Context, a *attempt) (outcome workerdb.Outcome) {
	ctx, span := f.traced(ctx, a)
	defer func() { endTraced(ctx, span, outcome) }()
	handler := f.registry.Find(a.run.JobType)
	if handler == nil {
		return failedOutcome(a, &handlers.Failure{
			Code: string(apierror.UnknownJobType), Message: fmt.Sprintf("no handler for job type %q", a.run.JobType),
		})
	}
	run, closed := a.open()
	if closed != nil {
		return failedOutcome(a, closed)
	}
	given := handlers.NewAttempt(run, a.traceID, a.log.add, func(p jobevent.Progress) {
		p.Message = clean(p.Message, maxProgress)
		a.progress.Store(&p)
		f.beats.change()
	})
	given.JobType, given.Queue = a.run.JobType, a.queue
	given.WhenSettled = func(settled func(jobevent.Kind)) { a.settled.Store(&settled) }
	outcome = call(ctx, handler, a, given)
	f.metrics.ran(a, outcome.FinishedAt.Sub(a.startedAt))
	return outcome
}

// call runs the handler and makes an outcome of what it returns. A panic, be it of an error's own Error
// method, fails the attempt and not the worker.
func call(ctx context.Context, h handlers.Handler, a *attempt, given *handlers.Attempt) (o workerdb.Outcome) {
	defer func() {
		if value := recover(); value != nil {
			slog.ErrorContext(ctx, "handler panicked", "panic", a.forLog(clean(fmt.Sprint(value), maxMessage)))
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
