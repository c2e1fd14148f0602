package runjob

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jobweaver/jobweaver/functions/runjob/pool"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/telemetry"
	"github.com/jobweaver/jobweaver/shared/workerdb"
)

// settleAll writes outcomes in batches until the intake is closed and empty. When ctx ends it drops the others: they
// are still open, and other workers will settle them.
func (f *Function) settleAll(ctx context.Context) {
	together := f.newLinger()
	for {
		if together.pays() {
			f.finished.gather(together.most, prompt)
		}
		batch := f.finished.take(maxBatch)
		together.note(len(batch), time.Now())
		if len(batch) == 0 {
			f.toPublish.close()
			return
		}
		f.settling.Store(int64(len(batch)))
		open := make([]*pool.Finished, 0, len(batch))
		for i := range batch {
			if !batch[i].Settled {
				open = append(open, &batch[i])
			}
		}
		settle := func(part []*pool.Finished) error { return f.settle(ctx, part) }
		err := bisect(open, settle, func(one *pool.Finished, err error) { f.settleUnstorable(ctx, one, err) })
		if err != nil {
			telemetry.Logger(ctx).ErrorContext(ctx, "outcomes not settled", "attempts", len(open), "error", err)
		} else {
			f.forget(ctx, batch)
			f.toPublish.put(batch...)
		}
		f.settling.Store(0)
	}
}

func (f *Function) settle(ctx context.Context, part []*pool.Finished) error {
	if len(part) == 0 {
		return nil
	}
	outcomes := make([]workerdb.Outcome, len(part))
	for i, one := range part {
		outcomes[i] = one.Outcome
	}
	return untilDone(ctx, &f.troubles.settle, func() error {
		defer f.calls.Begin("settling")()
		began := time.Now()
		traced, span := tracedSettle(ctx, part)
		settled, err := f.store.Settle(traced, f.id, outcomes)
		span.Done(err)
		if err != nil {
			return err
		}
		f.metrics.settledAll(len(outcomes), time.Since(began))
		for i, one := range part {
			one.Outcome = settled[i]
		}
		f.deleteCheckpoints(ctx, part)
		return nil
	})
}

// settleUnstorable settles an attempt as failed because the database refuses its outcome.
func (f *Function) settleUnstorable(ctx context.Context, one *pool.Finished, refused error) {
	telemetry.Logger(ctx).ErrorContext(ctx, "outcome refused by the store", telemetry.FieldJobID, one.Outcome.JobID,
		telemetry.FieldAttempt, one.Outcome.Attempt, telemetry.FieldTraceID, one.Outcome.TraceID, "error", refused)
	one.Outcome.Kind = jobevent.KindFailed
	one.Outcome.Output, one.Outcome.RetryAfter, one.Outcome.CallbackTimeout = nil, 0, 0
	one.Outcome.ErrorCode = string(apierror.InvalidOutput)
	one.Outcome.Message, one.Outcome.Retryable = "the store refuses the outcome", false
	if err := f.settle(ctx, []*pool.Finished{one}); err != nil && errors.Is(err, jobevent.ErrInvalid) {
		one.Outcome.Kind = "" // not published; it stays open until another worker settles it
	}
}

// forget removes attempts from the pool whose outcome is in the store.
func (f *Function) forget(ctx context.Context, batch []pool.Finished) {
	keys := make([]workerdb.Key, 0, len(batch))
	for i := range batch {
		one := &batch[i]
		// An attempt that could not be settled stays: otherwise its open row would look like one of a claim whose answer was
		// lost.
		if one.Attempt == nil || one.Outcome.Kind == "" {
			continue
		}
		keys = append(keys, one.Attempt.Key())
		if settled := one.Attempt.Settled.Load(); settled != nil {
			(*settled)(one.Outcome.Kind)
		}
		if one.Outcome.Kind == workerdb.Waiting {
			f.pool.Leave(one.Attempt, time.Now())
		}
		f.metrics.settled(one.Attempt, one.Outcome)
		logOutcome(ctx, one.Outcome, one.Attempt.Private.Load())
	}
	f.pool.Settled(keys)
}

// logOutcome logs the outcome of an attempt: at debug level if nothing went wrong.
func logOutcome(ctx context.Context, o workerdb.Outcome, private bool) {
	level := slog.LevelInfo
	if o.Kind == workerdb.Completed || o.Kind == workerdb.Waiting {
		level = slog.LevelDebug
	}
	logger := telemetry.Logger(ctx)
	if !logger.Enabled(ctx, level) {
		return
	}
	if private || jobevent.IsSealed(o.Message) {
		o.Message = ""
	}
	logger.LogAttrs(ctx, level, "attempt settled", slog.String("outcome", string(o.Kind)),
		slog.String(telemetry.FieldJobID, o.JobID.String()), slog.Int("attempt", o.Attempt),
		slog.String(telemetry.FieldTraceID, o.TraceID.String()), slog.String("workerId", o.WorkerID),
		slog.String("errorCode", o.ErrorCode), slog.String("message", pool.Clean(o.Message, 200)))
}
