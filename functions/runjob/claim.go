package runjob

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/trace"

	"github.com/jobweaver/jobweaver/functions/runjob/offsets"
	"github.com/jobweaver/jobweaver/functions/runjob/pool"
	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/telemetry"
	"github.com/jobweaver/jobweaver/shared/workerdb"
)

// claimAll reads records and claims their attempts while there is room, until ctx ends. If the pool is full, records
// stay in Kafka. A claim that is under way when ctx ends may finish until work ends.
func (f *Function) claimAll(ctx, work context.Context) {
	select {
	case <-f.cancels.Started(): // otherwise it could miss a cancel of an attempt that it claims now
	case <-ctx.Done():
	}
	if f.cfg.Demand != nil {
		f.claimDemanded(ctx, work)
		return
	}
	var orders []ordered // read but not claimed: there was no room for all attempts of an event
	for ctx.Err() == nil {
		f.wantsRoom.Store(true) // before it looks for room, so that it misses none
		if room := min(f.pool.Room(), f.room(), maxBatch); room > 0 {
			f.wantsRoom.Store(false) // waking for every attempt that ends would cost more than the claims
			if len(orders) == 0 {
				batch := f.consumers.take(room)
				orders = f.read(work, batch)
				if len(orders) == 0 && len(batch) > 0 {
					continue
				}
			}
			if n := min(room, len(orders)); n > 0 {
				f.claim(ctx, work, orders[:n:n])
				orders = orders[n:]
				continue
			}
		}
		select {
		case <-f.wake:
		case <-ctx.Done():
		}
	}
}

// ordered is a run order with the record that it came from.
type ordered struct {
	delivered
	run  jobevent.Run
	from trace.SpanContext // invalid: without tracing

	readAt   time.Time      // of an unclaimed one, or when it was last looked up
	giveBack *pool.GiveBack // it is given back instead of run; nil: it is not
}

func (o *ordered) bytes() int { return len(o.run.Payload) + len(o.run.Parents) + len(o.run.Event) }

func (o *ordered) key() workerdb.Key { return workerdb.Key{JobID: o.run.JobID, Attempt: o.run.Attempt} }

// read reads the run orders in a batch of records, and rejects those that it cannot read.
func (f *Function) read(work context.Context, batch []delivered) []ordered {
	read := make([]ordered, 0, len(batch))
	tracing := telemetry.TracingOf(work)
	for _, d := range batch {
		items, label := funchost.Decode(d.message, f.cfg.Kafka.Keys)
		if len(items) > 1 {
			d.Items = offsets.NewItemTracker(len(items))
		}
		for i, it := range items {
			d.Item, d.of = i, it
			if it.Err != nil {
				f.reject(work, d, label, it.Err)
				continue
			}
			run, err := readRun(it)
			if err != nil {
				f.reject(work, d, telemetry.RejectedInvalid, err)
				continue
			}
			read = append(read, ordered{delivered: d, run: run, from: tracing.ParentOf(it)})
		}
	}
	return read
}

// claim claims attempts in one statement, and places each by the answer. If ctx ends first, the records are not done
// and come again. Otherwise all claims up to the store's latest are answered.
func (f *Function) claim(ctx, work context.Context, read []ordered) {
	orders := read[:0]
	var here []offsets.Record
	seen := make(map[workerdb.Key]int, len(read)) // indexes into orders
	// Look before the claim. An attempt of the pool may be settled and forgotten while the claim is under way. If the
	// claim read it in the database before that, it would look like that of a claim whose answer was lost.
	keys := make([]workerdb.Key, len(read))
	for i := range read {
		keys[i] = read[i].key()
	}
	known := f.pool.Known(keys)
	for at, o := range read {
		i, twice := seen[o.key()]
		switch {
		case known[at]:
			if o.run.Cancel {
				f.pool.Cancel(o.key(), f.timing.cancelPatience)
			}
			here = append(here, o.Record)
		case twice:
			orders[i].run.Cancel = orders[i].run.Cancel || o.run.Cancel
			here = append(here, o.Record)
		default:
			seen[o.key()] = len(orders)
			orders = append(orders, o)
		}
	}
	offsets.Done(here)
	err := bisect(orders, func(part []ordered) error { return f.claimPart(ctx, work, part) }, func(o ordered, err error) {
		f.reject(work, o.delivered, telemetry.RejectedInvalid, err)
	})
	if err == nil {
		f.answered.Store(f.store.LastClaim())
	}
}

func (f *Function) claimPart(ctx, work context.Context, orders []ordered) error {
	if len(orders) == 0 {
		return nil
	}
	asked := make([]workerdb.Order, len(orders))
	for i := range orders {
		o := &orders[i]
		asked[i] = workerdb.Order{
			Key: o.key(), TraceID: o.of.TraceID(), TimeoutMs: int(o.run.TimeoutMs), Cancel: o.run.Cancel,
		}
		if o.run.ExpiresAt != nil {
			asked[i].ExpiresAt = *o.run.ExpiresAt
		}
	}
	return untilDone(ctx, &f.troubles.claim, func() error {
		defer f.calls.Begin("a claim")()
		epoch, began := f.pool.Epoch(), time.Now()
		traced, span := tracedClaim(work, orders)
		claims, err := f.store.Claim(traced, f.id, asked)
		span.Done(err)
		if err != nil {
			return err
		}
		saved, err := f.checkpoints(work, orders, claims)
		if err != nil {
			return err // the claim is repeated, and finds the attempts claimed by this worker
		}
		return f.place(orders, claims, saved, epoch, began)
	})
}

var errOutlived = errors.New("the worker fell silent during the claim: others may have settled its attempts as lost")

// place adds each claimed attempt to the pool, publishes the outcome of each settled one, and drops those of other
// workers. began is when the claim began, by this process's clock. An attempt expires by the database's clock: the time
// that the claim took is subtracted from what it has left.
func (f *Function) place(
	orders []ordered, claims []workerdb.Claim, saved map[uuid.UUID]json.RawMessage, epoch int, began time.Time,
) error {
	mine := make([]*pool.Attempt, 0, len(orders))
	var settled []pool.Finished
	var elsewhere []offsets.Record
	for i := range orders {
		o := &orders[i]
		switch claims[i].State {
		case workerdb.Claimed, workerdb.OpenMine: // OpenMine: the answer to an earlier claim was lost
			a := &pool.Attempt{
				Run: o.run, Queue: o.Partition.Queue, TraceID: o.of.TraceID(), Order: o.from, From: o.Record,
				SentAt: o.of.Time(), Checkpoint: saved[o.run.JobID], GiveBack: o.giveBack,
			}
			a.SealWith(f.sealer)
			if o.run.ExpiresAt != nil {
				a.ExpiresAt = began.Add(o.run.ExpiresAt.Sub(claims[i].At))
			}
			mine = append(mine, a)
		case workerdb.Settled:
			settled = append(settled, pool.Finished{Outcome: claims[i].Outcome, Settled: true, From: o.Record})
		case workerdb.OpenElsewhere:
			elsewhere = append(elsewhere, o.Record)
		}
	}
	if len(mine) > 0 && !f.pool.Add(mine, epoch) {
		return errOutlived
	}
	for _, one := range settled {
		f.decided(one)
	}
	offsets.Done(elsewhere)
	f.metrics.claimed(len(orders), time.Since(began))
	return nil
}

// readRun reads a run order. Its errors are permanent.
func readRun(e jobevent.Item) (jobevent.Run, error) {
	run, err := jobevent.DecodeAs[jobevent.Run](e, jobevent.TypeRun)
	if err != nil {
		return run, err
	}
	if run.JobID == uuid.Nil || run.Attempt < 1 || run.Attempt > math.MaxInt32 ||
		run.TimeoutMs < 1 || run.TimeoutMs > math.MaxInt32 {
		err = fmt.Errorf("read run order: jobId, attempt or timeoutMs is invalid: %w", jobevent.ErrInvalid)
	}
	return run, err
}
