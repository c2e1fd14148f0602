package runjob

import (
	"container/heap"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/jobweaver/jobweaver/functions/runjob/offsets"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/workerdb"
)

// Demand is what others ask for, of a worker whose handlers only pass attempts on. Such a worker claims an attempt
// when a claim for one of its kind comes, and not before: until then its record is not done, its row does not exist,
// and any other worker may have it. The functions are called from several goroutines.
type Demand struct {
	// Slots is how many attempts could run at once, those that run included. Heartbeats report it to the scheduler.
	Slots func() int
	// Wants reports whether an attempt of that kind, with a payload of so many bytes, would be taken at once, and keeps
	// a place for it until its handler is called or Forget is.
	Wants func(kind Kind, key workerdb.Key, bytes int) bool
	// Forget gives up the place of an attempt that was not claimed after all. It may have none.
	Forget func(key workerdb.Key)
	// JobTypes lists, by name, the job types that are asked for.
	JobTypes func() []jobevent.JobType
}

// Kind is all by which a Demand tells attempts apart.
type Kind struct{ Queue, JobType, OwnerID string }

const (
	maxUnclaimed      = 2_000 // attempts read for which no claim has come; above it records stay in Kafka
	maxUnclaimedBytes = 32 << 20
	unclaimedEvery    = time.Second // how often those are looked through that have expired or went to another worker
)

// unclaimed are attempts that have been read and not claimed, by kind.
type unclaimed struct {
	mu    sync.Mutex
	kinds map[Kind]*byRank
	known map[workerdb.Key]*ordered
	bytes int
}

// byRank is a heap, the best rank first.
type byRank []*ordered

func (h byRank) Len() int           { return len(h) }
func (h byRank) Less(i, j int) bool { return h[i].run.Rank.Before(h[j].run.Rank) }
func (h byRank) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push is for container/heap.
func (h *byRank) Push(x any) { *h = append(*h, x.(*ordered)) }

// Pop is for container/heap.
func (h *byRank) Pop() any {
	last := len(*h) - 1
	o := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return o
}

func (o *ordered) kind() Kind {
	return Kind{Queue: o.Partition.Queue, JobType: o.run.JobType, OwnerID: o.run.OwnerID}
}

// room is how many more records may be read.
func (u *unclaimed) room() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.bytes >= maxUnclaimedBytes {
		return 0
	}
	return max(0, maxUnclaimed-len(u.known))
}

// some reports whether there is any.
func (u *unclaimed) some() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.known) > 0
}

// add keeps attempts. It returns the records that need nothing more, because an earlier one has their attempt.
func (u *unclaimed) add(orders []ordered) (here []offsets.Record) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for i := range orders {
		o := &orders[i]
		if there := u.known[o.key()]; there != nil {
			there.run.Cancel = there.run.Cancel || o.run.Cancel
			here = append(here, o.Record)
			continue
		}
		if u.known == nil {
			u.known, u.kinds = map[workerdb.Key]*ordered{}, map[Kind]*byRank{}
		}
		u.known[o.key()] = o
		u.bytes += len(o.run.Payload)
		same := u.kinds[o.kind()]
		if same == nil {
			same = &byRank{}
			u.kinds[o.kind()] = same
		}
		heap.Push(same, o)
	}
	return here
}

// take removes up to limit attempts that are wanted, the best rank first.
func (u *unclaimed) take(limit int, d *Demand) []ordered {
	u.mu.Lock()
	defer u.mu.Unlock()
	var taken []ordered
	refused := map[Kind]bool{}
	for len(taken) < limit {
		var best Kind
		var first *ordered
		for kind, same := range u.kinds {
			if o := (*same)[0]; !refused[kind] && (first == nil || o.run.Rank.Before(first.run.Rank)) {
				best, first = kind, o
			}
		}
		if first == nil {
			break
		}
		if !d.Wants(best, first.key(), len(first.run.Payload)) {
			refused[best] = true
			continue
		}
		taken = append(taken, *first)
		heap.Pop(u.kinds[best])
		u.dropped(first)
	}
	return taken
}

// remove removes the attempts that the function picks.
func (u *unclaimed) remove(pick func(*ordered) bool) []ordered {
	u.mu.Lock()
	defer u.mu.Unlock()
	var removed []ordered
	for _, o := range u.known {
		if !pick(o) {
			continue
		}
		removed = append(removed, *o)
		same := u.kinds[o.kind()]
		heap.Remove(same, slices.Index(*same, o))
		u.dropped(o)
	}
	return removed
}

// dropped forgets an attempt that has left its heap. The caller holds the mutex.
func (u *unclaimed) dropped(o *ordered) {
	delete(u.known, o.key())
	u.bytes -= len(o.run.Payload)
	if kind := o.kind(); u.kinds[kind].Len() == 0 {
		delete(u.kinds, kind)
	}
}

// Unclaimed counts the attempts that were read and for which no claim has come yet, by kind.
func (f *Function) Unclaimed() map[Kind]int {
	u := &f.unclaimed
	u.mu.Lock()
	defer u.mu.Unlock()
	counts := make(map[Kind]int, len(u.kinds))
	for kind, same := range u.kinds {
		counts[kind] = same.Len()
	}
	return counts
}

// Demanded has the worker look again at what its Demand wants; slots: Demand.Slots or JobTypes changed, too.
func (f *Function) Demanded(slots bool) {
	if slots {
		f.beats.change()
	}
	// What is read from now on is compared with the demand as it is now. An idle pull function is asked often.
	if f.unclaimed.some() {
		f.wakeUp()
	}
}

// Fresh reports whether a handler may have another process start its attempt now: no other worker settles an attempt
// of this one as lost within the next 5 s.
func (f *Function) Fresh() bool { return f.pool.Fresh() }

// claimDemanded is claimAll of a worker with a Demand.
func (f *Function) claimDemanded(ctx, work context.Context) {
	again := time.NewTicker(unclaimedEvery)
	defer again.Stop()
	for ctx.Err() == nil {
		// Before it looks, so that no room is made unseen. A batch that fills the room is followed by another look.
		f.wantsRoom.Store(true)
		took := f.readMore(work)
		if f.claimWanted(ctx, work) || took {
			continue
		}
		select {
		case <-f.wake:
		case <-again.C:
			f.claimOverdue(ctx, work)
		case <-ctx.Done():
		}
	}
}

// readMore reads records as far as they may wait in memory, and reports whether there were any.
func (f *Function) readMore(work context.Context) bool {
	room := min(f.unclaimed.room(), maxBatch)
	if room == 0 {
		return false
	}
	batch := f.consumers.take(room)
	offsets.Done(f.unclaimed.add(f.read(work, batch)))
	return len(batch) > 0
}

// claimWanted claims what is wanted and what is to be cancelled, and reports whether there was any.
func (f *Function) claimWanted(ctx, work context.Context) bool {
	room := min(f.pool.Room(), f.room(), maxBatch)
	if room <= 0 {
		return false
	}
	orders := f.unclaimed.take(room, f.cfg.Demand)
	if len(orders) == 0 {
		return false
	}
	f.claimKept(ctx, work, orders)
	return true
}

// claimKept claims attempts for which places are kept, and gives up the places of those that did not come.
func (f *Function) claimKept(ctx, work context.Context, orders []ordered) {
	keys := make([]workerdb.Key, len(orders)) // claim sorts the orders in their own array
	for i := range orders {
		keys[i] = orders[i].key()
	}
	f.claim(ctx, work, orders)
	for i, here := range f.pool.Known(keys) {
		if !here {
			f.cfg.Demand.Forget(keys[i])
		}
	}
}

// claimOverdue settles what is to be cancelled or has expired, and drops what another worker has to run now.
func (f *Function) claimOverdue(ctx, work context.Context) {
	now := time.Now()
	overdue := f.unclaimed.remove(func(o *ordered) bool {
		return o.run.Cancel || o.run.ExpiresAt != nil && !now.Before(*o.run.ExpiresAt)
	})
	for part := range slices.Chunk(overdue, maxBatch) {
		f.claim(ctx, work, part)
	}
	f.unclaimed.remove(func(o *ordered) bool { return !f.consumers.holds(o.Partition) })
}
