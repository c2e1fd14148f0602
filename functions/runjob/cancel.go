package runjob

import (
	"context"

	"github.com/IBM/sarama"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/runjob/pool"
	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/telemetry"
	"github.com/jobweaver/jobweaver/shared/workerdb"
)

// wish is a request to cancel an attempt that this worker does not hold.
type wish struct {
	key     workerdb.Key
	traceID uuid.UUID
}

// tailCancels reads all requests to cancel an attempt, as every worker does.
func (f *Function) tailCancels(ctx context.Context) {
	_ = f.cancels.Run(ctx, func(m *sarama.ConsumerMessage) { // returns no error: it reconnects
		items, _ := funchost.Decode(m, f.cfg.Kafka.Keys)
		for _, it := range items {
			var c jobevent.AttemptCancel
			err := it.Err
			if err == nil {
				c, err = jobevent.DecodeAs[jobevent.AttemptCancel](it, jobevent.TypeAttemptCancel)
			}
			if err != nil { // not rejected, since every worker reads it; the scheduler repeats the request
				telemetry.Logger(ctx).WarnContext(ctx, "request to cancel cannot be read", "offset", m.Offset, "error", err)
				continue
			}
			if c.WorkerID != "" {
				f.obey(ctx, c)
				continue
			}
			f.wanted(wish{workerdb.Key{JobID: c.JobID, Attempt: c.Attempt}, it.TraceID()})
		}
	})
}

// obey acts on an order to a worker. The worker's heartbeats show that it has, or the order comes again.
func (f *Function) obey(ctx context.Context, order jobevent.AttemptCancel) {
	if order.WorkerID != f.id {
		return
	}
	if order.Follows != "" {
		f.follow(ctx, order)
	}
	turned := f.consumers.drain(order.Drain)
	if f.pool.Drain(order.Drain, order.DrainVersion) {
		f.heartbeats.change()
	}
	switch {
	case !turned:
	case order.Drain:
		telemetry.Logger(ctx).InfoContext(ctx, "worker drains", "workerId", f.id)
	default:
		telemetry.Logger(ctx).InfoContext(ctx, "worker takes attempts again", "workerId", f.id)
	}
}

// follow serves the created queues of an order.
func (f *Function) follow(ctx context.Context, order jobevent.AttemptCancel) {
	changed, err := f.consumers.follow(order.Queues, order.Follows)
	if err != nil {
		telemetry.Logger(ctx).ErrorContext(ctx, "cannot serve a created queue", "workerId", f.id, "error", err)
	}
	if changed {
		telemetry.Logger(ctx).InfoContext(ctx, "worker follows the created queues", "workerId", f.id,
			"queues", f.consumers.queues())
	}
	f.heartbeats.change()
}

func (f *Function) wanted(w wish) {
	f.unclaimed.cancel(w.key)
	if f.pool.Cancel(w.key, f.timing.cancelPatience) || f.wishes.len() >= maxCancels {
		return
	}
	f.wishes.put(w)
}

// cancelAll marks attempts of other workers, and settles attempts that no worker has claimed, so that they
// never start. All workers do this, and the first one settles.
func (f *Function) cancelAll(ctx context.Context) {
	for {
		batch := f.wishes.take(maxBatch)
		if len(batch) == 0 {
			return
		}
		orders := make([]workerdb.Order, 0, len(batch))
		for _, w := range batch {
			if w.key.JobID != uuid.Nil && w.key.Attempt > 0 {
				orders = append(orders, workerdb.Order{Key: w.key, TraceID: w.traceID})
			}
		}
		_ = bisect(orders, func(part []workerdb.Order) error { return f.cancel(ctx, part) },
			func(o workerdb.Order, err error) {
				telemetry.Logger(ctx).WarnContext(ctx, "attempt cannot be cancelled", telemetry.FieldJobID, o.JobID,
					telemetry.FieldAttempt, o.Attempt, telemetry.FieldTraceID, o.TraceID, "error", err)
			})
		// This worker may have claimed the attempt since it looked for it.
		for _, w := range batch {
			f.pool.Cancel(w.key, f.timing.cancelPatience)
		}
	}
}

func (f *Function) cancel(ctx context.Context, orders []workerdb.Order) error {
	if len(orders) == 0 {
		return nil
	}
	return untilDone(ctx, &f.troubles.cancel, func() error {
		outcomes, err := f.store.Cancel(ctx, f.id, orders)
		for _, outcome := range outcomes {
			f.decided(pool.Finished{Outcome: outcome, Settled: true})
		}
		return err
	})
}
