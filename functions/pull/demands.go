package pull

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jobweaver/jobweaver/functions/runjob"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/pullwire"
)

const (
	// maxDemands and maxDemandsOfOne bound the bytes of the demands in a heartbeat, of all callers and of one: half of
	// what the others leave at least.
	maxDemands      = 256 << 10
	maxDemandsOfOne = 64 << 10
)

// isThere reports whether a pull worker has an open claim, or had one a short time ago.
func (w *pullWorker) isThere(now time.Time, present time.Duration) bool {
	return w.claims > 0 || now.Sub(w.seenAt) < present
}

// group names pull workers that ask for the same.
type group struct {
	pullwire.Caller
	types, queues string
}

func groupOf(caller pullwire.Caller, types, queues []string) group {
	if caller.Everyone {
		caller.Owner = ""
	}
	return group{caller, strings.Join(types, " "), strings.Join(queues, " ")}
}

// bytes returns about how much of a heartbeat the group takes.
func (g group) bytes() int { return len(g.Owner) + len(g.types) + len(g.queues) + 100 }

// mayAsk reports whether the demands of all pull workers fit into a heartbeat together with a new one. The caller holds
// the mutex.
func (f *Function) mayAsk(now time.Time, asked pullwire.Claim) bool {
	added := groupOf(asked.Caller, asked.Types, asked.Queues)
	all, own := 0, 0
	for g := range f.groups(now) {
		if g == added {
			return true
		}
		if all += g.bytes(); g.Caller == added.Caller {
			own += g.bytes()
		}
	}
	return all+added.bytes() <= maxDemands && own+added.bytes() <= maxDemandsOfOne
}

// groups returns the demands of the pull workers that are there, or that run attempts. It forgets the others. The
// caller holds the mutex.
func (f *Function) groups(now time.Time) map[group]*jobevent.Demand {
	demands := map[group]*jobevent.Demand{}
	for key, w := range f.workers {
		slots := w.running
		switch {
		case w.isThere(now, f.timing.present):
			slots = max(w.capacity, w.running)
		case w.running == 0:
			delete(f.workers, key)
			continue
		}
		g := groupOf(key.Caller, w.types, w.queues)
		d := demands[g]
		if d == nil {
			d = &jobevent.Demand{Everyone: g.Everyone, OwnerID: g.Owner, JobTypes: w.types, Queues: w.queues}
			demands[g] = d
		}
		d.Slots += slots
		d.Rate += w.pace.rate(now)
	}
	return demands
}

// demands returns the list for a heartbeat. If the pull workers have more slots than PULL_SLOTS, these are divided
// among the owners.
func (f *Function) demands() []jobevent.Demand {
	now := time.Now()
	f.mu.Lock()
	demands := f.groups(now)
	f.mu.Unlock()
	byOwner := map[pullwire.Caller][]*jobevent.Demand{}
	list := make([]jobevent.Demand, 0, len(demands))
	for g, d := range demands {
		byOwner[g.Caller] = append(byOwner[g.Caller], d)
	}
	share(f.cfg.Slots, byOwner)
	for _, d := range demands {
		list = append(list, *d)
	}
	slices.SortFunc(list, func(a, b jobevent.Demand) int {
		return cmp.Or(cmp.Compare(a.OwnerID, b.OwnerID), slices.Compare(a.JobTypes, b.JobTypes),
			slices.Compare(a.Queues, b.Queues))
	})
	return list
}

// share divides slots among callers: one that asks for less than an equal part leaves the rest to the others. Within
// what a caller gets, its demands are cut in the same way.
func share(slots int, byCaller map[pullwire.Caller][]*jobevent.Demand) {
	wants := map[pullwire.Caller]int{}
	for caller, demands := range byCaller {
		for _, d := range demands {
			wants[caller] += d.Slots
		}
	}
	for caller, granted := range fairly(slots, wants) {
		own := map[*jobevent.Demand]int{}
		for _, d := range byCaller[caller] {
			own[d] = d.Slots
		}
		for d, n := range fairly(granted, own) {
			d.Slots = n
		}
	}
}

// fairly divides slots: who wants the least comes first, and gets at most an equal part of what is left.
func fairly[K comparable](slots int, wants map[K]int) map[K]int {
	granted := make(map[K]int, len(wants))
	left := len(wants)
	for _, who := range slices.SortedFunc(maps.Keys(wants), func(a, b K) int { return cmp.Compare(wants[a], wants[b]) }) {
		granted[who] = min(wants[who], slots/left)
		slots, left = slots-granted[who], left-1
	}
	return granted
}

// slots returns how many attempts the pull workers may have at once.
func (f *Function) slots() int {
	now := time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	slots := 0
	for _, d := range f.groups(now) {
		slots += d.Slots
	}
	return min(slots, f.cfg.Slots)
}

// serves reports whether a pull worker takes attempts of a kind, now or when it has ended one.
func (f *Function) serves(kind runjob.Kind) bool {
	now := time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, w := range f.workers {
		if (w.running > 0 || w.isThere(now, f.timing.present)) && takes(w.key.Caller, w.types, w.queues, kind) {
			return true
		}
	}
	return false
}

// pace is how many attempts a pull worker finishes in a second.
type pace struct {
	since    time.Time
	finished int
	last     float64
}

// paceEvery is how much time one rate is about.
const paceEvery = 2 * time.Second

func (p *pace) finish(now time.Time) {
	p.rate(now)
	p.finished++
}

func (p *pace) rate(now time.Time) float64 {
	if d := now.Sub(p.since); d >= paceEvery {
		p.last = float64(p.finished) / d.Seconds()
		p.since, p.finished = now, 0
	}
	return p.last
}
