package schedulerdb

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/internal/gen"
)

const (
	// ahead is for how long a worker's queue is filled beyond its slots: no-op jobs never run dry, and
	// ten-minute jobs, whose rate is nothing, never pile up.
	ahead = 250 * time.Millisecond
	// lot is how many attempts of one step go to the same partition of a worker before the next one has a
	// turn. A partition more is a batch of records more for broker, producer and worker (one attempt to each of
	// twelve in turn cost a job 2 to 3 % more CPU), and a worker does not care from which of its own one comes.
	lot = 64
	// homelessMost is how much of a queue goes out that no worker serves, so that lag can wake one.
	homelessMost = 16
)

// room is how much may go out now, and where to.
type room struct {
	workers  []*workerRoom
	homeless map[string]int // attempts out, by queue
	turn     int32          // of the partitions of a queue without a worker
}

type workerRoom struct {
	id         string
	partitions map[string][]int32
	slots      int
	prefetch   int
	used       int
	turn       int
}

func (w *workerRoom) free() int { return w.slots - w.used }

func newRoom(live []gen.WorkersLiveRow, out outs) (*room, error) {
	r := &room{homeless: map[string]int{}, turn: rand.Int32N(jobevent.RunPartitions)}
	byID := map[string]*workerRoom{}
	type seat struct {
		queue     string
		partition int32
	}
	owner := map[seat]*workerRoom{}
	for _, row := range live {
		w := &workerRoom{
			id: row.WorkerID, slots: int(row.Slots), turn: lot * rand.IntN(jobevent.RunPartitions),
			prefetch: int(row.Rate * ahead.Seconds()),
		}
		if err := json.Unmarshal(row.Partitions, &w.partitions); err != nil {
			return nil, fmt.Errorf("read partitions of worker %s: %w", row.WorkerID, err)
		}
		r.workers, byID[w.id] = append(r.workers, w), w
		for queue, partitions := range w.partitions {
			for _, p := range partitions {
				owner[seat{queue, p}] = w
			}
		}
	}
	for queue, byWorker := range out {
		for worker, counts := range byWorker {
			for p, n := range counts {
				w := byID[worker]
				if w == nil {
					w = owner[seat{queue, int32(p)}]
				}
				if w != nil {
					w.used += n
				} else {
					r.homeless[queue] += n
				}
			}
		}
	}
	return r, nil
}

// place is where one attempt may go.
type place struct {
	partition int16
	worker    *workerRoom // nil: none lives
}

func partitionsOf(places []place) []int16 {
	partitions := make([]int16, len(places))
	for i, p := range places {
		partitions[i] = p.partition
	}
	return partitions
}

// take gives places for up to n attempts of a queue, the best first, and uses them up.
func (r *room) take(queue string, n int) []place {
	var serving []*workerRoom
	for _, w := range r.workers {
		if len(w.partitions[queue]) > 0 {
			serving = append(serving, w)
		}
	}
	if len(serving) == 0 {
		return r.takeHomeless(queue, n)
	}
	var places []place
	for len(places) < n {
		w := roomiest(serving)
		if w == nil {
			break
		}
		w.used++
		partitions := w.partitions[queue]
		places = append(places, place{int16(partitions[w.turn/lot%len(partitions)]), w})
		w.turn++
	}
	return places
}

// giveBack returns places that nothing waited for, so that another queue of the same workers has them.
func (r *room) giveBack(queue string, places []place) {
	for _, p := range places {
		if p.worker != nil {
			p.worker.used--
		} else {
			r.homeless[queue]--
		}
	}
}

func (r *room) takeHomeless(queue string, n int) []place {
	n = min(n, homelessMost-r.homeless[queue])
	var places []place
	for range n {
		r.turn = (r.turn + 1) % jobevent.RunPartitions
		places = append(places, place{partition: int16(r.turn)})
	}
	r.homeless[queue] += len(places)
	return places
}

// roomiest is the worker with the most free slots, or where none has any, the one that will soonest
// have; nil when all are full.
func roomiest(workers []*workerRoom) *workerRoom {
	var best *workerRoom
	for _, w := range workers {
		if w.free()+w.prefetch <= 0 {
			continue
		}
		switch {
		case best == nil,
			w.free() > 0 && w.free() > best.free(),
			best.free() <= 0 && w.free()+w.prefetch > best.free()+best.prefetch:
			best = w
		}
	}
	return best
}
