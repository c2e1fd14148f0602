package dispatch

import (
	"cmp"
	"container/heap"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

const (
	// ahead is for how long a worker's queue is filled beyond its slots. No-op jobs never run dry, and ten-minute jobs,
	// whose rate is close to zero, never pile up.
	ahead = 250 * time.Millisecond
	// RunLength is how many attempts of one step go to the same partition of a worker before its next partition has a
	// turn. A further partition is a further batch of records for the broker, the producer and the worker: one attempt to
	// each of twelve in turn cost a job 2 to 3 % more CPU. A worker does not care which of its partitions an attempt is
	// in.
	RunLength = 64
	// MaxUnserved is how much of a queue goes out that no worker serves, so that the lag can wake one.
	MaxUnserved = 16
)

// Room is how much may go out now, and where to.
type Room struct {
	workers  []*Worker
	isAsked  func(queue string) bool
	unserved map[string]int // attempts that are out and that no live worker serves, by queue
	turn     int32          // of the partitions of a queue without a worker
}

// Worker is a live worker as its last heartbeat described it.
type Worker struct {
	ID         string
	Partitions map[string][]int32 // by queue
	Slots      int
	Rate       float64  // attempts that the worker finishes in a second
	Build      string   // read only if the ledger has jobs that stay on a build
	Demands    []Demand // of a function pull: it runs what its pull workers ask for; nil: it is no such worker

	types    map[string]bool // the job types that it runs; nil: any
	owner    *string         // whose jobs it runs; nil: everyone's
	isGroup  bool            // it stands for the pull workers of one Demand
	drains   bool            // it gets no attempts
	prefetch int
	used     int
	turn     int
}

// RunOnly sets the job types that the worker runs; nil: any. They matter only if the ledger has sorted queues.
func (w *Worker) RunOnly(jobTypes []string) {
	if jobTypes == nil {
		return
	}
	w.types = make(map[string]bool, len(jobTypes))
	for _, name := range jobTypes {
		w.types[name] = true
	}
}

// runs reports whether the worker runs a job type for an owner; nil: for any. A target without a live worker may run
// any.
func (w *Worker) runs(jobType string, owner *string) bool {
	return w == nil || w.types == nil || w.types[jobType] && (owner == nil || w.owner == nil || *w.owner == *owner)
}

// groups returns the worker or, for a function pull, a worker for each Demand of its pull workers.
func (w *Worker) groups() []*Worker {
	if w.Demands == nil {
		return []*Worker{w}
	}
	groups := make([]*Worker, len(w.Demands))
	for i, ask := range w.Demands {
		g := &Worker{
			ID: w.ID, Partitions: w.Partitions, Slots: ask.Slots, Rate: ask.Rate, isGroup: true, drains: w.drains,
		}
		g.RunOnly(append([]string{}, ask.JobTypes...))
		if !ask.Everyone {
			g.owner = &w.Demands[i].OwnerID
		}
		if len(ask.Queues) > 0 {
			g.Partitions = maps.Clone(w.Partitions)
			maps.DeleteFunc(g.Partitions, func(queue string, _ []int32) bool { return !slices.Contains(ask.Queues, queue) })
		}
		groups[i] = g
	}
	return groups
}

func (w *Worker) free() int { return w.slotsLeft() + w.prefetch }

func (w *Worker) slotsLeft() int { return w.Slots - w.used }

// NewRoom subtracts what is out from what the live workers can hold. It owns the workers from then on.
func NewRoom(workers []*Worker, l *Ledger) *Room {
	l.CompareTypes(workers)
	r := &Room{workers: l.live, isAsked: l.IsAsked, unserved: map[string]int{}, turn: rand.Int32N(jobevent.RunPartitions)}
	byID := map[string]*Worker{}
	type partition struct {
		queue  string
		number int32
	}
	owner := map[partition]*Worker{}
	for _, w := range workers {
		byID[w.ID] = w
		for queue, numbers := range w.Partitions {
			for _, p := range numbers {
				owner[partition{queue, p}] = w
			}
		}
	}
	for _, w := range r.workers {
		w.turn, w.prefetch = RunLength*rand.IntN(jobevent.RunPartitions), int(w.Rate*ahead.Seconds())
	}
	for at, n := range l.out.all() {
		w := byID[at.worker]
		if w == nil {
			w = owner[partition{at.queue, int32(at.partition)}]
		}
		if w != nil {
			w.used += n
		} else {
			r.unserved[at.queue] += n
		}
	}
	r.spread(l.asked, byID)
	return r
}

// spread subtracts the attempts of each kind that are out from the slots of the pull workers that ask for it. The
// scheduler does not know which of them has which attempt. It begins with the kinds that the fewest run, fills first
// those pull workers that run the fewest kinds, and gives none to an instance of pull that has fewer attempts out. What
// does not fit waits for one of them, and takes nothing from the others.
func (r *Room) spread(out map[Kind]int, instances map[string]*Worker) {
	if len(out) == 0 {
		return
	}
	left := map[string]int{} // attempts of each instance that have no group yet
	for id, w := range instances {
		left[id] = w.used
	}
	of := map[Kind][]*Worker{}
	for _, g := range r.workers {
		for kind := range out {
			if g.isGroup && len(g.Partitions[kind.Queue]) > 0 && g.runs(kind.JobType, &kind.OwnerID) {
				of[kind] = append(of[kind], g)
			}
		}
	}
	for _, kind := range slices.SortedFunc(maps.Keys(of), func(a, b Kind) int {
		return cmp.Or(len(of[a])-len(of[b]), cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.JobType, b.JobType),
			cmp.Compare(a.OwnerID, b.OwnerID))
	}) {
		n, groups := out[kind], of[kind]
		slices.SortStableFunc(groups, (*Worker).compareBreadth)
		for _, g := range groups {
			some := max(0, min(n, g.slotsLeft(), left[g.ID]))
			g.used, left[g.ID], n = g.used+some, left[g.ID]-some, n-some
		}
		for _, g := range groups {
			some := max(0, min(n, g.slotsLeft()))
			g.used, n = g.used+some, n-some
		}
		groups[0].used += n
	}
}

// Target is where one attempt may go.
type Target struct {
	Partition int16
	worker    *Worker // nil: no live worker serves the queue
}

// Partitions returns those of targets.
func Partitions(targets []Target) []int16 {
	partitions := make([]int16, len(targets))
	for i, t := range targets {
		partitions[i] = t.Partition
	}
	return partitions
}

// Take returns targets for up to n attempts of a queue, the best first, and uses them up.
func (r *Room) Take(queue string, n int) []Target {
	serving := serving(r.workers, queue)
	if len(serving) == 0 {
		return r.takeUnserved(queue, n)
	}
	byRoom := roomiest(serving)
	heap.Init(&byRoom)
	var targets []Target
	for len(targets) < n && byRoom[0].free() > 0 {
		w := byRoom[0]
		w.used++
		partitions := w.Partitions[queue]
		targets = append(targets, Target{int16(partitions[w.turn/RunLength%len(partitions)]), w})
		w.turn++
		heap.Fix(&byRoom, 0)
	}
	return targets
}

// serving returns the workers that have partitions of a queue and do not drain.
func serving(workers []*Worker, queue string) []*Worker {
	var serving []*Worker
	for _, w := range workers {
		if len(w.Partitions[queue]) > 0 && !w.drains {
			serving = append(serving, w)
		}
	}
	return serving
}

// GiveBack gives back targets for which no job waited, so that another queue of the same workers can use them.
func (r *Room) GiveBack(queue string, targets []Target) {
	for _, t := range targets {
		if t.worker != nil {
			t.worker.used--
		} else {
			r.unserved[queue]--
		}
	}
}

func (r *Room) takeUnserved(queue string, n int) []Target {
	if r.isAsked(queue) {
		return nil // what no pull worker asks for waits for one
	}
	n = min(n, MaxUnserved-r.unserved[queue])
	var targets []Target
	for range n {
		r.turn = (r.turn + 1) % jobevent.RunPartitions
		targets = append(targets, Target{Partition: int16(r.turn)})
	}
	r.unserved[queue] += len(targets)
	return targets
}

// roomiest is a heap of workers: first the one with the most free slots and, if none has a free slot, the one that will
// have one soonest.
type roomiest []*Worker

func (r roomiest) Len() int      { return len(r) }
func (r roomiest) Swap(i, j int) { r[i], r[j] = r[j], r[i] }
func (r roomiest) Less(i, j int) bool {
	a, b := max(r[i].slotsLeft(), 0), max(r[j].slotsLeft(), 0)
	return a > b || a == 0 && b == 0 && r[i].free() > r[j].free()
}

// Push and Pop implement heap.Interface; nothing uses them.
func (r *roomiest) Push(any) {}

// Pop implements heap.Interface.
func (r *roomiest) Pop() any { return nil }

func shuffle(queues []string) {
	rand.Shuffle(len(queues), func(i, j int) { queues[i], queues[j] = queues[j], queues[i] })
}
