package runjob

import (
	"context"
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

// claimAll takes records while there is room for them, until ctx ends. A full pool leaves them in Kafka.
// A claim that is under way then is let finish, as far as work allows.
func (f *Function) claimAll(ctx, work context.Context) {
	select {
	case <-f.cancels.Started(): // or a wish to cancel what is claimed now could be missed
	case <-ctx.Done():
	}
	if f.cfg.Demand != nil {
		f.claimDemanded(ctx, work)
		return
	}
	var orders []ordered // read and not claimed: there was no room for all attempts of an event
	for ctx.Err() == nil {
		f.wantsRoom.Store(true) // before it looks, so that none is made unseen
		if room := min(f.pool.Room(), f.room(), maxBatch); room > 0 {
			f.wantsRoom.Store(false) // wakes for every attempt that ends would cost more than the claims
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

// ordered is a record that has been read.
type ordered struct {
	delivered
	run  jobevent.Run
	from trace.SpanContext // invalid: there is no tracing
}

func (o *ordered) key() workerdb.Key { return workerdb.Key{JobID: o.run.JobID, Attempt: o.run.Attempt} }

// read reads the orders to run attempts in a batch of records, and rejects what it cannot read.
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
			read = append(read, ordered{d, run, tracing.ParentOf(it)})
		}
	}
	return read
}

// claim takes attempts in one statement and passes each on to where it belongs. When ctx ends first, their records
// stay undone and come again; else the store's claims so far are answered.
func (f *Function) claim(ctx, work context.Context, read []ordered) {
	orders := read[:0]
	var here []offsets.Record
	seen := make(map[workerdb.Key]int, len(read)) // index into orders
	// Asked before the claim: an attempt that is here may be settled and forgotten while the claim
	// is under way, and its row, read before that, would look like one whose claim got lost.
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
			Key:     o.key(),
			TraceID: o.of.TraceID(), Queue: o.Partition.Queue, TimeoutMs: int(o.run.TimeoutMs), Cancel: o.run.Cancel,
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
		return f.place(orders, claims, epoch, began)
	})
}

var errOutlived = errors.New("the worker fell silent meanwhile: others may have settled its attempts as lost")

// place passes each order on by its answer: to the pool, to be published, or to nowhere. The claim began at an instant
// of this process's clock: what expires, by the database's, is given so much less time as the claim took.
func (f *Function) place(orders []ordered, claims []workerdb.Claim, epoch int, began time.Time) error {
	mine := make([]*pool.Attempt, 0, len(orders))
	var settled []pool.Finished
	var elsewhere []offsets.Record
	for i := range orders {
		o := &orders[i]
		switch claims[i].State {
		case workerdb.Claimed, workerdb.OpenMine: // the latter: a claim whose answer got lost
			a := &pool.Attempt{Run: o.run, Queue: o.Partition.Queue, TraceID: o.of.TraceID(), Order: o.from, From: o.Record}
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

// readRun reads an order to run an attempt. No error gets better.
func readRun(e jobevent.Item) (jobevent.Run, error) {
	run, err := jobevent.DecodeAs[jobevent.Run](e, jobevent.TypeRun)
	if err != nil {
		return run, err
	}
	if run.JobID == uuid.Nil || run.Attempt < 1 || run.Attempt > math.MaxInt32 ||
		run.TimeoutMs < 1 || run.TimeoutMs > math.MaxInt32 {
		err = fmt.Errorf("read order to run: jobId, attempt or timeoutMs is not one: %w", jobevent.ErrInvalid)
	}
	return run, err
}
