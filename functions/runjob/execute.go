package runjob

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"

	"github.com/jobweaver/jobweaver/functions/runjob/handlers"
	"github.com/jobweaver/jobweaver/functions/runjob/pool"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/client/durable"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/telemetry"
	"github.com/jobweaver/jobweaver/shared/workerdb"
)

// work is one slot of the pool: it runs attempts until the pool stops.
func (f *Function) work(ctx context.Context, slot int) {
	var last *pool.Attempt
	var outcome workerdb.Outcome
	for {
		a, runs := f.pool.Next(ctx, slot, last, outcome)
		if a == nil {
			return
		}
		last, outcome = a, f.execute(runs, a)
	}
}

// execute runs an attempt's handler. Its result is the outcome, unless the outcome was decided before: at the timeout,
// or some time after a cancel, whether or not the handler obeys its context.
func (f *Function) execute(ctx context.Context, a *pool.Attempt) (outcome workerdb.Outcome) {
	ctx, span := f.traced(ctx, a)
	defer func() { endTraced(ctx, span, outcome) }()
	handler := f.registry.Find(a.Run.JobType)
	if handler == nil {
		return pool.UnknownTypeOutcome(a)
	}
	opened, closed := a.Open()
	if closed != nil {
		return pool.FailedOutcome(a, closed)
	}
	given := handlers.NewAttempt(opened.Run, a.TraceID, a.Log.Add, func(p jobevent.Progress) {
		p.Message = pool.Clean(p.Message, maxProgress)
		a.Progress.Store(&p)
		f.heartbeats.change()
	})
	given.JobType, given.Queue = a.Run.JobType, a.Queue
	given.Saved, given.Parents = opened.Checkpoint, opened.Parents
	given.Save = func(ctx context.Context, number int64, data json.RawMessage) error {
		return f.saveCheckpoint(ctx, a, number, data)
	}
	given.Checkpoint = durable.New(opened.Checkpoint, func(number int64, data json.RawMessage) error {
		return f.saveSoon(ctx, a, number, data)
	})
	given.Start = func() bool { return f.pool.Start(a) }
	given.RunBy = func(name string) { a.RanBy.Store(&name) }
	given.WhenSettled = func(settled func(jobevent.Kind)) { a.Settled.Store(&settled) }
	outcome = call(ctx, handler, a, given)
	if !a.StartedAt.IsZero() {
		f.metrics.ran(a, outcome.FinishedAt.Sub(a.StartedAt))
	}
	return outcome
}

// call runs the handler and converts its result to an outcome. A panic, even of an error's Error method, fails the
// attempt and not the worker.
func call(ctx context.Context, h handlers.Handler, a *pool.Attempt, given *handlers.Attempt) (o workerdb.Outcome) {
	defer func() {
		if value := recover(); value != nil {
			telemetry.Logger(ctx).ErrorContext(ctx, "handler panicked",
				"panic", a.ForLog(pool.Clean(fmt.Sprint(value), jobevent.MaxMessage)))
			o = pool.ErrorOutcome(ctx, a, &handlers.Failure{
				Code: string(apierror.Panic), Message: fmt.Sprintf("panic: %v\n\n%s", value, debug.Stack()), Retryable: true,
			})
		}
	}()
	result, err := h(ctx, given)
	if err != nil {
		return pool.ErrorOutcome(ctx, a, err)
	}
	return pool.ResultOutcome(a, result)
}
