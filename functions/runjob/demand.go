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

// Demand is for a worker whose handlers pass attempts on to other processes, such as pull workers. The worker claims an
// attempt only when a process asks for one of its kind. Until then the record is not done, the row does not exist, and
// any other worker may claim the attempt. The functions are called from several goroutines.
type Demand struct {
	// Slots returns how many attempts the scheduler may have sent at once: those that could run, including those that run,
	// and those that wait for a process that is not there. Heartbeats report it.
	Slots func() int
	// Wants reports whether a process would take an attempt of this kind and payload size at once. If so, it keeps a place
	// for the attempt until its handler or Forget is called.
	Wants func(kind Kind, key workerdb.Key, bytes int) bool
	// Forget gives up the place of an attempt that was not claimed after all. The attempt may have no place.
	Forget func(key workerdb.Key)
	// JobTypes returns the job types that processes ask for, sorted by name.
	JobTypes func() []jobevent.JobType
}

// Kind is what a Demand knows of an attempt.
type Kind struct{ Queue, JobType, OwnerID string }

const (
	maxUnclaimed      = 2_000 // attempts that were read and not claimed; with more, records stay in Kafka
	maxUnclaimedBytes = 32 << 20
	unclaimedEvery    = time.Second // between checks for expired attempts and those that others have claimed
)

// unclaimed has the attempts that were read and not claimed, by kind.
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

// Push implements heap.Interface.
func (h *byRank) Push(x any) { *h = append(*h, x.(*ordered)) }

// Pop implements heap.Interface.
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

// room returns how many more records may be read.
func (u *unclaimed) room() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.bytes >= maxUnclaimedBytes {
		return 0
	}
	return max(0, maxUnclaimed-len(u.known))
}

// some reports whether there are unclaimed attempts.
func (u *unclaimed) some() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.known) > 0
}

// add adds attempts. It returns the records that are done because an earlier record has their attempt.
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
		u.bytes += o.bytes()
		same := u.kinds[o.kind()]
		if same == nil {
			same = &byRank{}
			u.kinds[o.kind()] = same
		}
		heap.Push(same, o)
	}
	return here
}

// take removes and returns up to limit wanted attempts, the best rank first.
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
		if !d.Wants(best, first.key(), first.bytes()) {
			refused[best] = true
			continue
		}
		taken = append(taken, *first)
		heap.Pop(u.kinds[best])
		u.dropped(first)
	}
	return taken
}

// remove removes and returns the attempts that the function picks.
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

// dropped removes what is kept of an attempt that has left its heap. The caller holds the mutex.
func (u *unclaimed) dropped(o *ordered) {
	delete(u.known, o.key())
	u.bytes -= o.bytes()
	if kind := o.kind(); u.kinds[kind].Len() == 0 {
		delete(u.kinds, kind)
	}
}

// Unclaimed returns the number of attempts that were read and not claimed, by kind.
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

// Demanded makes the worker look again for attempts that its Demand wants; slots: Demand.Slots or JobTypes changed too.
func (f *Function) Demanded(slots bool) {
	if slots {
		f.beats.change()
	}
	// Records that are read from now on are compared with the present demand. Claims at an idle pull function come often.
	if f.unclaimed.some() {
		f.wakeUp()
	}
}

// Fresh reports whether a handler may let another process start its attempt now: no other worker settles an attempt of
// this one as lost within the next 5 s.
func (f *Function) Fresh() bool { return f.pool.Fresh() }

// claimDemanded is claimAll for a worker with a Demand.
func (f *Function) claimDemanded(ctx, work context.Context) {
	again := time.NewTicker(unclaimedEvery)
	defer again.Stop()
	for ctx.Err() == nil {
		// Before it looks for room, so that it misses none. After a batch that fills the room it looks again.
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

// readMore reads as many records as may wait in memory, and reports whether there were any.
func (f *Function) readMore(work context.Context) bool {
	room := min(f.unclaimed.room(), maxBatch)
	if room == 0 {
		return false
	}
	batch := f.consumers.take(room)
	offsets.Done(f.unclaimed.add(f.read(work, batch)))
	return len(batch) > 0
}

// claimWanted claims wanted attempts and those that are to be cancelled, and reports whether there were any.
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

// claimKept claims attempts for which places are kept, and gives up the places of those that it did not get.
func (f *Function) claimKept(ctx, work context.Context, orders []ordered) {
	keys := make([]workerdb.Key, len(orders)) // before claim sorts the orders in place
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

// claimOverdue settles attempts that are to be cancelled or have expired, and drops those that another worker has
// claimed.
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
