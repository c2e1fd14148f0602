package dispatch

import (
	"math/rand/v2"
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
	unserved map[string]int // attempts that are out and that no live worker serves, by queue
	turn     int32          // of the partitions of a queue without a worker
}

// Worker is a live worker as its last heartbeat described it.
type Worker struct {
	ID         string
	Partitions map[string][]int32 // by queue
	Slots      int
	Rate       float64 // attempts that the worker finishes in a second
	Build      string  // read only if the ledger has jobs that stay on a build

	types    map[string]bool // the job types that it runs; nil: any
	drains   bool            // it gets no attempts
	prefetch int
	used     int
	turn     int
}

// RunOnly sets the job types that the worker runs; nil: any. They matter only if the ledger has scarce types.
func (w *Worker) RunOnly(jobTypes []string) {
	if jobTypes == nil {
		return
	}
	w.types = make(map[string]bool, len(jobTypes))
	for _, name := range jobTypes {
		w.types[name] = true
	}
}

// runs reports whether the worker runs a job type. A target without a live worker may run any.
func (w *Worker) runs(jobType string) bool { return w == nil || w.types == nil || w.types[jobType] }

func (w *Worker) free() int { return w.slotsLeft() + w.prefetch }

func (w *Worker) slotsLeft() int { return w.Slots - w.used }

// NewRoom subtracts what is out from what the live workers can hold. It owns the workers from then on.
func NewRoom(workers []*Worker, l *Ledger) *Room {
	l.CompareTypes(workers)
	r := &Room{workers: workers, unserved: map[string]int{}, turn: rand.Int32N(jobevent.RunPartitions)}
	byID := map[string]*Worker{}
	type partition struct {
		queue  string
		number int32
	}
	owner := map[partition]*Worker{}
	for _, w := range workers {
		w.turn, w.prefetch = RunLength*rand.IntN(jobevent.RunPartitions), int(w.Rate*ahead.Seconds())
		byID[w.ID] = w
		for queue, numbers := range w.Partitions {
			for _, p := range numbers {
				owner[partition{queue, p}] = w
			}
		}
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
	return r
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
	var targets []Target
	for len(targets) < n {
		w := roomiest(serving)
		if w == nil {
			break
		}
		w.used++
		partitions := w.Partitions[queue]
		targets = append(targets, Target{int16(partitions[w.turn/RunLength%len(partitions)]), w})
		w.turn++
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
	n = min(n, MaxUnserved-r.unserved[queue])
	var targets []Target
	for range n {
		r.turn = (r.turn + 1) % jobevent.RunPartitions
		targets = append(targets, Target{Partition: int16(r.turn)})
	}
	r.unserved[queue] += len(targets)
	return targets
}

// roomiest returns the worker with the most free slots. If none has a free slot, it returns the one that will have one
// soonest; nil: all are full.
func roomiest(workers []*Worker) *Worker {
	var best *Worker
	for _, w := range workers {
		if w.free() <= 0 {
			continue
		}
		switch {
		case best == nil,
			w.slotsLeft() > 0 && w.slotsLeft() > best.slotsLeft(),
			best.slotsLeft() <= 0 && w.free() > best.free():
			best = w
		}
	}
	return best
}

func shuffle(queues []string) {
	rand.Shuffle(len(queues), func(i, j int) { queues[i], queues[j] = queues[j], queues[i] })
}
