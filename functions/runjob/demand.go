package runjob

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/jobweaver/jobweaver/functions/runjob/offsets"
	"github.com/jobweaver/jobweaver/functions/runjob/pool"
	"github.com/jobweaver/jobweaver/functions/runjob/turns"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/workerdb"
)

// Demand is for a worker whose handlers pass attempts on to other processes, such as pull workers. The scheduler sends
// it what these ask for, and the worker claims an attempt only when a process asks for one of its kind. Until then the
// record is not done, and any other worker may claim the attempt. The functions are called from
// several goroutines.
type Demand struct {
	// Slots returns how many attempts the processes may have at once, those that they have included.
	Slots func() int
	// List returns what the processes ask for. Heartbeats report it.
	List func() []jobevent.Demand
	// Wants reports whether a process would take an attempt of this kind and payload size at once. If so, it keeps a
	// place for the attempt until its handler or Forget is called.
	Wants func(kind Kind, key workerdb.Key, bytes int) bool
	// Forget gives up the place of an attempt that was not claimed after all. The attempt may have no place.
	Forget func(key workerdb.Key)
	// Serves reports whether a process asks for attempts of a kind, or runs some and will ask again.
	Serves func(kind Kind) bool
}

// Kind is what a Demand knows of an attempt.
type Kind struct{ Queue, JobType, OwnerID string }

const (
	// maxUnclaimed and maxUnclaimedBytes bound the attempts that were read and not claimed: the scheduler sends as many
	// as there are slots and what these finish in a quarter of a second. Beyond that the owner with the most bytes
	// gives some back.
	maxUnclaimed      = 8_000
	maxUnclaimedBytes = 32 << 20
	unclaimedEvery    = time.Second // between checks for attempts that have to leave
	// givenBackAfter is for how long no process asks for a kind before its attempts go back to the scheduler. A process
	// that was restarted meanwhile finds them here.
	givenBackAfter = 5 * time.Second
	// lookedUpAfter is how long an attempt waits before the database is asked whether another worker has it.
	lookedUpAfter = 10 * time.Second
)

var (
	tooMany = pool.GiveBack{Why: "attempts of its owner wait for pull workers and fill the memory", Delay: 2 * time.Second}
	unasked = pool.GiveBack{Why: "no pull worker asks for its job type", Delay: 100 * time.Millisecond}
)

// unclaimed has the attempts that were read and not claimed, by kind.
type unclaimed struct {
	mu       sync.Mutex
	kinds    map[Kind]*turns.Queue[*ordered]
	served   map[string]int // by fairness key: the number of the attempt that was taken last
	taken    int
	unserved map[Kind]time.Time // since when no process asks for a kind
	known    map[workerdb.Key]*ordered
	bytes    int
	byOwner  map[string]int // bytes
}

func (o *ordered) isBefore(other *ordered) bool { return o.run.Rank.Before(other.run.Rank) }

func (o *ordered) kind() Kind {
	return Kind{Queue: o.Partition.Queue, JobType: o.run.JobType, OwnerID: o.run.OwnerID}
}

// weight returns about how many bytes of memory an unclaimed attempt takes.
func (o *ordered) weight() int { return o.bytes() + 500 }

// shed removes and returns attempts beyond the bounds: of the owner with the most bytes those with the worst ranks.
func (u *unclaimed) shed() (removed []ordered) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for u.bytes > maxUnclaimedBytes || len(u.known) > maxUnclaimed {
		owner, most := "", -1
		for name, n := range u.byOwner {
			if n > most {
				owner, most = name, n
			}
		}
		var worst *ordered
		for _, o := range u.known {
			if o.run.OwnerID == owner && (worst == nil || worst.run.Rank.Before(o.run.Rank)) {
				worst = o
			}
		}
		worst.giveBack = &tooMany
		removed = append(removed, *worst)
		u.removeOne(worst)
	}
	return removed
}

// cancel marks an attempt that is to be cancelled.
func (u *unclaimed) cancel(key workerdb.Key) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if o := u.known[key]; o != nil {
		o.run.Cancel = true
	}
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
			u.known, u.kinds, u.byOwner = map[workerdb.Key]*ordered{}, map[Kind]*turns.Queue[*ordered]{}, map[string]int{}
			u.served = map[string]int{}
		}
		u.known[o.key()], o.readAt = o, time.Now()
		u.bytes += o.weight()
		u.byOwner[o.run.OwnerID] += o.weight()
		same := u.kinds[o.kind()]
		if same == nil {
			same = turns.New((*ordered).isBefore)
			u.kinds[o.kind()] = same
		}
		same.Push(turns.KeyOf(&o.run), o)
	}
	return here
}

// take removes and returns up to limit wanted attempts. Fairness keys take turns; of one key the best rank goes first.
func (u *unclaimed) take(limit int, d *Demand) []ordered {
	u.mu.Lock()
	defer u.mu.Unlock()
	var taken []ordered
	refused := map[Kind]bool{}
	for len(taken) < limit {
		var best Kind
		var first *ordered
		for kind, same := range u.kinds {
			if o := same.First(); !refused[kind] && (first == nil || u.isNext(o, first)) {
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
		u.kinds[best].Next()
		u.taken++
		u.served[turns.KeyOf(&first.run)] = u.taken
		u.dropped(first)
	}
	return taken
}

func (u *unclaimed) isNext(o, other *ordered) bool {
	last, others := u.served[turns.KeyOf(&o.run)], u.served[turns.KeyOf(&other.run)]
	return last < others || last == others && o.isBefore(other)
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
		u.removeOne(o)
	}
	return removed
}

// removeOne removes an attempt from the queue of its kind. The caller holds the mutex.
func (u *unclaimed) removeOne(o *ordered) {
	u.kinds[o.kind()].Remove(turns.KeyOf(&o.run), o)
	u.dropped(o)
}

// noteServed notes which kinds no process asks for, and since when. serves must not be called with the mutex held.
func (u *unclaimed) noteServed(now time.Time, serves func(Kind) bool) {
	u.mu.Lock()
	kinds := slices.Collect(maps.Keys(u.kinds))
	u.mu.Unlock()
	unserved := map[Kind]bool{}
	for _, kind := range kinds {
		unserved[kind] = !serves(kind)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	before := u.unserved
	u.unserved = map[Kind]time.Time{}
	for kind, is := range unserved {
		if since, was := before[kind]; is && was {
			u.unserved[kind] = since
		} else if is {
			u.unserved[kind] = now
		}
	}
}

// dropped removes what is kept of an attempt that has left the queue of its kind. The caller holds the mutex.
func (u *unclaimed) dropped(o *ordered) {
	delete(u.known, o.key())
	if len(u.known) == 0 {
		clear(u.served)
	}
	u.bytes -= o.weight()
	if u.byOwner[o.run.OwnerID] -= o.weight(); u.byOwner[o.run.OwnerID] == 0 {
		delete(u.byOwner, o.run.OwnerID)
	}
	if kind := o.kind(); u.kinds[kind].Len() == 0 {
		delete(u.kinds, kind)
	}
}

// Demanded makes the worker look again for attempts that its Demand wants. hurry: processes ask for other kinds or for
// more, and the scheduler must know at once.
func (f *Function) Demanded(hurry bool) {
	if hurry {
		f.heartbeats.hurry()
	}
	// Records that are read from now on are compared with the present demand. Claims at an idle pull function come
	// often.
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
		took := f.readMore(ctx, work)
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

// readMore reads records into memory, and reports whether there were any.
func (f *Function) readMore(ctx, work context.Context) bool {
	batch := f.consumers.take(maxBatch)
	offsets.Done(f.unclaimed.add(f.read(work, batch)))
	f.giveUp(ctx, work, f.unclaimed.shed())
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

// claimKept claims attempts for which places are kept, and gives up the places of those that it did not get. That may
// be because they are here already, and a record came again: then no handler is called for the place.
func (f *Function) claimKept(ctx, work context.Context, orders []ordered) {
	keys := make([]workerdb.Key, len(orders)) // before claim sorts the orders in place
	for i := range orders {
		keys[i] = orders[i].key()
	}
	before := f.pool.Known(keys)
	f.claim(ctx, work, orders)
	for i, here := range f.pool.Known(keys) {
		if before[i] || !here {
			f.cfg.Demand.Forget(keys[i])
		}
	}
}

// claimOverdue lets attempts leave memory without a process: those that are to be cancelled or have expired, those of
// kinds for which no process asks, and those that another worker has.
func (f *Function) claimOverdue(ctx, work context.Context) {
	now := time.Now()
	u := &f.unclaimed
	u.noteServed(now, f.cfg.Demand.Serves)
	f.giveUp(ctx, work, u.remove(func(o *ordered) bool {
		since, isUnserved := u.unserved[o.kind()]
		if isUnserved && now.Sub(since) >= givenBackAfter {
			o.giveBack = &unasked
		}
		return o.giveBack != nil || o.run.Cancel || o.run.ExpiresAt != nil && !now.Before(*o.run.ExpiresAt)
	}))
	u.remove(func(o *ordered) bool { return !f.consumers.holds(o.Partition) })
	f.lookUp(ctx, work, now)
}

// giveUp claims attempts that nothing here runs: the pool decides them at once.
func (f *Function) giveUp(ctx, work context.Context, orders []ordered) {
	for part := range slices.Chunk(orders, maxBatch) {
		f.claim(ctx, work, part)
	}
}

// lookUp claims attempts that have waited long and that another worker has claimed or settled, and so drops them.
func (f *Function) lookUp(ctx, work context.Context, now time.Time) {
	u := &f.unclaimed
	var keys []workerdb.Key
	u.mu.Lock()
	for key, o := range u.known {
		if now.Sub(o.readAt) >= lookedUpAfter && len(keys) < maxBatch {
			o.readAt = now
			keys = append(keys, key)
		}
	}
	u.mu.Unlock()
	if len(keys) == 0 {
		return
	}
	taken, err := f.store.Taken(ctx, keys)
	if err != nil {
		return // the next look repeats it
	}
	f.giveUp(ctx, work, u.remove(func(o *ordered) bool { return slices.Contains(taken, o.key()) }))
}

// Unclaimed returns the number of attempts that were read and not claimed, by queue.
func (f *Function) Unclaimed() map[string]int {
	u := &f.unclaimed
	u.mu.Lock()
	defer u.mu.Unlock()
	counts := map[string]int{}
	for kind, same := range u.kinds {
		counts[kind.Queue] += same.Len()
	}
	return counts
}
