package runjob

import (
	"context"
	"time"

	"github.com/jobweaver/jobweaver/functions/runjob/offsets"
	"github.com/jobweaver/jobweaver/functions/runjob/pool"
	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/telemetry"
	"github.com/jobweaver/jobweaver/shared/workerdb"
)

// publishAll publishes the outcomes of attempts. Only afterwards are the records of their run orders committed.
func (f *Function) publishAll(ctx context.Context, publish funchost.Publish) {
	tracing := telemetry.TracingOf(ctx)
	for {
		batch := f.toPublish.take(maxBatch)
		if len(batch) == 0 {
			return
		}
		f.publishing.Store(int64(len(batch)))
		events := make([]jobevent.Item, 0, len(batch))
		records := make([]offsets.Record, 0, len(batch))
		var weight int64
		for i := range batch {
			one := &batch[i]
			events = append(events, one.Events...)
			first := len(events)
			events = f.appendLog(ctx, events, one.Attempt)
			events = f.appendOutcome(ctx, events, one.Outcome)
			traceOutcome(tracing, one, events[first:])
			if one.From.Partition != nil {
				records = append(records, one.From)
			}
			weight += one.Bytes
		}
		if err := f.publishItems(ctx, publish, events); err == nil {
			offsets.Done(records)
		}
		f.publishing.Store(0)
		f.weight.Add(-weight)
		f.wakeUp()
	}
}

// publishItems publishes events, however long the broker is unavailable. It drops an event that can never be published.
func (f *Function) publishItems(ctx context.Context, publish funchost.Publish, events []jobevent.Item) error {
	return funchost.PublishAll(ctx, publish, events, &f.troubles.publish, func(jobevent.Item) {})
}

// room returns how many more attempts may be claimed before other outcomes are published.
func (f *Function) room() int {
	if f.weight.Load() > maxUnpublishedBytes {
		return 0
	}
	return maxUnpublished - f.unpublished()
}

// unpublished returns how many outcomes are not published yet.
func (f *Function) unpublished() int {
	return f.finished.len() + int(f.settling.Load()) + f.toPublish.len() + int(f.publishing.Load())
}

func (f *Function) appendOutcome(ctx context.Context, events []jobevent.Item, o workerdb.Outcome) []jobevent.Item {
	if o.Kind == "" {
		return events
	}
	typ, data := outcomeData(o)
	return f.append(ctx, events, typ, jobevent.Meta{
		JobID: o.JobID, TraceID: o.TraceID,
	}, data)
}

func outcomeData(o workerdb.Outcome) (typ string, data any) {
	switch o.Kind {
	case workerdb.Completed:
		return jobevent.TypeCompleted, &jobevent.Completed{
			JobID: o.JobID, Attempt: o.Attempt, WorkerID: o.WorkerID, RanBy: o.RanBy,
			StartedAt: o.StartedAt.UTC(), FinishedAt: o.FinishedAt.UTC(), Output: o.Output,
		}
	case workerdb.Waiting:
		return jobevent.TypeWaiting, &jobevent.Waiting{
			JobID: o.JobID, Attempt: o.Attempt, WorkerID: o.WorkerID, RanBy: o.RanBy,
			StartedAt: o.StartedAt.UTC(), CallbackTimeoutMs: o.CallbackTimeout.Milliseconds(),
		}
	case jobevent.KindFailed, jobevent.KindLost, jobevent.KindInterrupted, jobevent.KindCancelled,
		jobevent.KindSnoozed:
	}
	failed := &jobevent.Failed{
		JobID: o.JobID, Attempt: o.Attempt, WorkerID: o.WorkerID, RanBy: o.RanBy, FinishedAt: o.FinishedAt.UTC(),
		ErrorCode: o.ErrorCode, Message: o.Message, Retryable: o.Retryable,
		RetryAfterMs: o.RetryAfter.Milliseconds(), Kind: o.Kind,
	}
	if !o.StartedAt.IsZero() {
		started := o.StartedAt.UTC()
		failed.StartedAt = &started
	}
	return jobevent.TypeFailed, failed
}

func (f *Function) appendLog(ctx context.Context, events []jobevent.Item, a *pool.Attempt) []jobevent.Item {
	if a == nil {
		return events
	}
	lines, first := a.Log.Drain()
	if len(lines) == 0 {
		return events
	}
	return f.append(ctx, events, jobevent.TypeAttemptLog, jobevent.Meta{
		ID: jobevent.AttemptLogID(a.Run.JobID, a.Run.Attempt, first), JobID: a.Run.JobID, TraceID: a.TraceID,
	}, jobevent.AttemptLog{JobID: a.Run.JobID, Attempt: a.Run.Attempt, FirstLine: first, Lines: lines})
}

func (f *Function) append(
	ctx context.Context, events []jobevent.Item, typ string, meta jobevent.Meta, data any,
) []jobevent.Item {
	meta.Function = Name
	e, err := jobevent.New(typ, meta, data)
	if err != nil {
		telemetry.Logger(ctx).ErrorContext(ctx, "event cannot be built", "type", typ,
			telemetry.FieldJobID, meta.JobID, "error", err)
		return events
	}
	return append(events, e)
}

// logRunning publishes the log lines of running attempts, so that people can follow them.
func (f *Function) logRunning(ctx context.Context, publish funchost.Publish) {
	ticker := time.NewTicker(f.timing.logEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		var events []jobevent.Item
		for _, a := range f.pool.List() {
			first := len(events)
			events = f.appendLog(ctx, events, a.Attempt)
			tracedLines(telemetry.TracingOf(ctx), a.Attempt, events[first:])
		}
		if len(events) > 0 {
			_ = f.publishItems(ctx, publish, events) // returns an error only if ctx ends
		}
	}
}
