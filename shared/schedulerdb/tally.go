package schedulerdb

import (
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// tally is what dispatching goes by: what is out, and from where on something may wait or be due. It
// stands for the whole of it, as it is kept, or for what one transaction has done to it.
type tally struct {
	out    outs
	floors map[string]time.Time // by queue: no job of a lower rank waits; none: no job waits
	due    time.Time            // nothing is due before; zero: nothing will be

	lanes   map[string]map[string]time.Time // by queue and lane, like floors
	running map[subject]int                 // of what is out, by job type and by owner; kept: of those under control
	// countedFor is the number of the set of controls for which running was counted: another set was counted
	// anew. Zero: these are changes, whatever is under control.
	countedFor int64

	// What a transaction has to release others from. None of it is kept.
	ended []uuid.UUID       // jobs that have ended
	keys  map[orderKey]bool // of which the next in line may have its turn

	moves []moved // for the metrics, once they are committed; not kept

	dependents int64 // rows of dependencies that somebody has seen: no ledger may say there are none
}

// outs counts the attempts that are out, by queue, by the worker that has said it holds them ("": none
// has), and by the partition they were sent to.
type outs map[string]map[string]*[jobevent.RunPartitions]int

func newTally() tally { return tally{out: outs{}, floors: map[string]time.Time{}} }

func (o outs) add(queue, worker string, partition int16, n int) {
	if n == 0 {
		return
	}
	byWorker := o[queue]
	if byWorker == nil {
		byWorker = map[string]*[jobevent.RunPartitions]int{}
		o[queue] = byWorker
	}
	counts := byWorker[worker]
	if counts == nil {
		counts = new([jobevent.RunPartitions]int)
		byWorker[worker] = counts
	}
	counts[uint16(partition)%jobevent.RunPartitions] += n
}

// addAll adds what other counts, times a factor.
func (o outs) addAll(other outs, factor int) {
	for queue, byWorker := range other {
		for worker, counts := range byWorker {
			for p, n := range counts {
				o.add(queue, worker, int16(p), factor*n)
			}
		}
	}
}

// tidy forgets whoever has nothing out, and says whether anything is.
func (o outs) tidy() bool {
	for queue, byWorker := range o {
		for worker, counts := range byWorker {
			if *counts == [jobevent.RunPartitions]int{} {
				delete(byWorker, worker)
			}
		}
		if len(byWorker) == 0 {
			delete(o, queue)
		}
	}
	return len(o) > 0
}

// goesTo notes that a worker has said it holds an attempt.
func (t *tally) goesTo(queue string, partition int16, from, to string) {
	if from != to {
		t.out.add(queue, from, partition, -1)
		t.out.add(queue, to, partition, 1)
	}
}

// waits notes that a job of that rank waits, in a lane or in none.
func (t *tally) waits(queue, lane string, rank time.Time) {
	rank = rank.Truncate(time.Microsecond) // as it is stored
	floors, key := t.floors, queue
	if lane != "" {
		floors, key = t.lanesOf(queue), lane
	}
	if floor, some := floors[key]; !some || rank.Before(floor) {
		floors[key] = rank
	}
}

func (t *tally) lanesOf(queue string) map[string]time.Time {
	if t.lanes == nil {
		t.lanes = map[string]map[string]time.Time{}
	}
	if t.lanes[queue] == nil {
		t.lanes[queue] = map[string]time.Time{}
	}
	return t.lanes[queue]
}

func (t *tally) countMore(running map[subject]int, factor int) {
	if t.running == nil && len(running) > 0 {
		t.running = map[subject]int{}
	}
	for s, n := range running {
		t.running[s] += factor * n
	}
}

// runs notes that more or fewer attempts of a job type and an owner are out.
func (t *tally) runs(jobType, owner string, n int) {
	if t.running == nil {
		t.running = map[subject]int{}
	}
	t.running[subject{jobevent.ControlType, jobType}] += n
	if owner != "" {
		t.running[subject{jobevent.ControlOwner, owner}] += n
	}
}

// turns notes that the next in line of a key may have its turn.
func (t *tally) turns(key orderKey) {
	if t.keys == nil {
		t.keys = map[orderKey]bool{}
	}
	t.keys[key] = true
}

// ends notes that a job has ended.
func (t *tally) ends(id uuid.UUID, orderingKey, ownerID *string) {
	t.ended = append(t.ended, id)
	if key, some := orderKeyOf(orderingKey, ownerID); some {
		t.turns(key)
	}
}

// falls notes that a job is due then, and says whether nothing is due as soon.
func (t *tally) falls(dueAt time.Time) bool {
	dueAt = dueAt.Truncate(time.Microsecond)
	if !t.due.IsZero() && !dueAt.Before(t.due) {
		return false
	}
	t.due = dueAt
	return true
}

// add takes in what another one says.
func (t *tally) add(news tally) {
	t.out.addAll(news.out, 1)
	for queue, rank := range news.floors {
		t.waits(queue, "", rank)
	}
	for queue, lanes := range news.lanes {
		for lane, rank := range lanes {
			t.waits(queue, lane, rank)
		}
	}
	t.countedFor = max(t.countedFor, news.countedFor)
	t.countMore(news.running, 1)
	if !news.due.IsZero() {
		t.falls(news.due)
	}
	t.ended = append(t.ended, news.ended...)
	for _, m := range news.moves {
		t.moved(m.jobType, m.to, m.n)
	}
	for key := range news.keys {
		t.turns(key)
	}
}

// moved is how many jobs of a type have come into a state.
type moved struct {
	jobType string
	to      jobstate.Status
	n       int
}

// moved notes that jobs have come into a state. A batch has few types and states: it looks for them in turn.
func (t *tally) moved(jobType string, to jobstate.Status, n int) {
	for i := range t.moves {
		if m := &t.moves[i]; m.to == to && m.jobType == jobType {
			m.n += n
			return
		}
	}
	t.moves = append(t.moves, moved{jobType, to, n})
}

// empty says whether there is nothing in it.
func (t *tally) empty() bool {
	return !t.out.tidy() && len(t.floors) == 0 && t.due.IsZero() && len(t.ended) == 0 && len(t.keys) == 0 &&
		len(t.lanes) == 0 && tidyRunning(t.running) == 0 && len(t.moves) == 0
}

// tidyRunning forgets of whom nothing runs, and says of how many something does.
func tidyRunning(running map[subject]int) int {
	maps.DeleteFunc(running, func(_ subject, n int) bool { return n == 0 })
	return len(running)
}

// missing is what has to be added to t so that it says what was counted: attempts, and jobs that wait
// or fall due below its floors. A floor that is too low does no harm.
func (t *tally) missing(counted tally) tally {
	drift := newTally()
	drift.out.addAll(counted.out, 1)
	drift.out.addAll(t.out, -1)
	for queue, rank := range counted.floors {
		if floor, some := t.floors[queue]; !some || rank.Before(floor) {
			drift.waits(queue, "", rank)
		}
	}
	for queue, lanes := range counted.lanes {
		for lane, rank := range lanes {
			if floor, some := t.lanes[queue][lane]; !some || rank.Before(floor) {
				drift.waits(queue, lane, rank)
			}
		}
	}
	drift.countedFor = counted.countedFor
	drift.countMore(counted.running, 1)
	drift.countMore(t.running, -1)
	if !counted.due.IsZero() && (t.due.IsZero() || counted.due.Before(t.due)) {
		drift.falls(counted.due)
	}
	return drift
}

func readTally(inFlight, floors json.RawMessage, due *time.Time) (tally, error) {
	t := newTally()
	t.due = orZero(due)
	if err := json.Unmarshal(inFlight, &t.out); err != nil {
		return t, fmt.Errorf("read what is in flight: %w", err)
	}
	if err := json.Unmarshal(floors, &t.floors); err != nil {
		return t, fmt.Errorf("read floors of the queues: %w", err)
	}
	return t, nil
}
