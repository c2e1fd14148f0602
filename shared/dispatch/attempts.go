package dispatch

import (
	"iter"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// attempts counts the attempts that are out, by queue, by the worker that has listed them ("": none has), and by the
// partition to which they were sent. The partitions that each topic has are counted in arrays: most installations have
// no others.
type attempts struct {
	low  map[string]map[string]*[jobevent.RunPartitions]int
	high map[string]map[string]map[int16]int
}

func newAttempts() attempts {
	return attempts{low: map[string]map[string]*[jobevent.RunPartitions]int{}}
}

// sentTo is a place to which attempts were sent.
type sentTo struct {
	queue, worker string
	partition     int16
}

func (a *attempts) add(queue, worker string, partition int16, n int) {
	if n == 0 {
		return
	}
	if partition >= jobevent.RunPartitions {
		a.addHigh(queue, worker, partition, n)
		return
	}
	byWorker := a.low[queue]
	if byWorker == nil {
		byWorker = map[string]*[jobevent.RunPartitions]int{}
		a.low[queue] = byWorker
	}
	byPartition := byWorker[worker]
	if byPartition == nil {
		byPartition = new([jobevent.RunPartitions]int)
		byWorker[worker] = byPartition
	}
	byPartition[uint16(partition)%jobevent.RunPartitions] += n
}

func (a *attempts) addHigh(queue, worker string, partition int16, n int) {
	if a.high == nil {
		a.high = map[string]map[string]map[int16]int{}
	}
	if a.high[queue] == nil {
		a.high[queue] = map[string]map[int16]int{}
	}
	if a.high[queue][worker] == nil {
		a.high[queue][worker] = map[int16]int{}
	}
	a.high[queue][worker][partition] += n
}

// all returns the counts other than zero.
func (a *attempts) all() iter.Seq2[sentTo, int] {
	return func(yield func(sentTo, int) bool) {
		for queue, byWorker := range a.low {
			for worker, byPartition := range byWorker {
				for p, n := range byPartition {
					if n != 0 && !yield(sentTo{queue, worker, int16(p)}, n) {
						return
					}
				}
			}
		}
		for queue, byWorker := range a.high {
			for worker, byPartition := range byWorker {
				for p, n := range byPartition {
					if n != 0 && !yield(sentTo{queue, worker, p}, n) {
						return
					}
				}
			}
		}
	}
}

// addAll adds the counts of other, times a factor.
func (a *attempts) addAll(other attempts, factor int) {
	for at, n := range other.all() {
		a.add(at.queue, at.worker, at.partition, factor*n)
	}
}

// tidy removes zeros, and reports whether anything is left.
func (a *attempts) tidy() bool {
	for queue, byWorker := range a.low {
		for worker, byPartition := range byWorker {
			if *byPartition == [jobevent.RunPartitions]int{} {
				delete(byWorker, worker)
			}
		}
		if len(byWorker) == 0 {
			delete(a.low, queue)
		}
	}
	for queue, byWorker := range a.high {
		for worker, byPartition := range byWorker {
			for p, n := range byPartition {
				if n == 0 {
					delete(byPartition, p)
				}
			}
			if len(byPartition) == 0 {
				delete(byWorker, worker)
			}
		}
		if len(byWorker) == 0 {
			delete(a.high, queue)
		}
	}
	return len(a.low)+len(a.high) > 0
}

func (a *attempts) ofQueue(queue string) int {
	sum := 0
	for _, byPartition := range a.low[queue] {
		for _, n := range byPartition {
			sum += n
		}
	}
	for _, byPartition := range a.high[queue] {
		for _, n := range byPartition {
			sum += n
		}
	}
	return sum
}
