package runjob

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/jobweaver/jobweaver/functions/runjob/handlers"
	"github.com/jobweaver/jobweaver/functions/runjob/pool"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/telemetry"
	"github.com/jobweaver/jobweaver/shared/workerdb"
)

// traced starts the span of an attempt.
func (f *Function) traced(ctx context.Context, a *pool.Attempt) (context.Context, *telemetry.Span) {
	tracing := telemetry.TracingOf(ctx)
	if tracing == nil {
		return ctx, nil
	}
	return tracing.Attempt(ctx, a.Order, telemetry.Attempt{
		JobID: a.Run.JobID, Number: a.Run.Attempt, JobType: a.Run.JobType, Queue: a.Queue, WorkerID: f.id,
	})
}

// endTraced ends the span. Of an error the span has only the code: messages are for the job's owner.
func endTraced(ctx context.Context, span *telemetry.Span, o workerdb.Outcome) {
	if span == nil {
		return
	}
	if errors.Is(context.Cause(ctx), handlers.ErrTimeout) { // the timeout decided the outcome
		o = workerdb.Outcome{Kind: jobevent.KindFailed, ErrorCode: string(apierror.Timeout)}
	}
	kind := o.ErrorCode
	if kind == "" && o.Kind != workerdb.Completed && o.Kind != workerdb.Waiting {
		kind = string(o.Kind)
	}
	span.End(kind, attribute.String(telemetry.AttrOutcome, string(o.Kind)))
}

func tracedClaim(ctx context.Context, orders []ordered) (context.Context, *telemetry.Span) {
	tracing := telemetry.TracingOf(ctx)
	if tracing == nil {
		return ctx, nil
	}
	from := make([]trace.SpanContext, len(orders))
	for i := range orders {
		from[i] = orders[i].from
	}
	return tracing.TogetherFor(ctx, "claim attempts", from)
}

func tracedSettle(ctx context.Context, part []*pool.Finished) (context.Context, *telemetry.Span) {
	tracing := telemetry.TracingOf(ctx)
	if tracing == nil {
		return ctx, nil
	}
	from := make([]trace.SpanContext, 0, len(part))
	for _, one := range part {
		if one.Attempt != nil {
			from = append(from, spanOf(tracing, one.Attempt, one.Outcome))
		}
	}
	return tracing.TogetherFor(ctx, "settle attempts", from)
}

// spanOf returns the span of an attempt: its own if it has started, otherwise that of its run order.
func spanOf(tracing *telemetry.Tracing, a *pool.Attempt, o workerdb.Outcome) trace.SpanContext {
	if o.StartedAt.IsZero() || !a.Order.IsValid() {
		return a.Order
	}
	return tracing.AttemptSpan(a.Order, a.Run.JobID, a.Run.Attempt)
}

// traceOutcome makes the span of an attempt that ended here the parent of its events.
func traceOutcome(tracing *telemetry.Tracing, one *pool.Finished, events []jobevent.Item) {
	if tracing == nil || one.Attempt == nil || !one.Attempt.Order.IsValid() {
		return
	}
	for i := range events {
		telemetry.SetParent(&events[i], spanOf(tracing, one.Attempt, one.Outcome))
	}
}

// tracedLines makes the span of a running attempt the parent of its log lines.
func tracedLines(tracing *telemetry.Tracing, a *pool.Attempt, events []jobevent.Item) {
	if tracing == nil || !a.Order.IsValid() {
		return
	}
	for i := range events {
		telemetry.SetParent(&events[i], tracing.AttemptSpan(a.Order, a.Run.JobID, a.Run.Attempt))
	}
}
