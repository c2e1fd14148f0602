package dispatch

import (
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// counts are the figures by which jobs are dispatched. They stand for all jobs, in the ledger, or for what one
// transaction changed, in a delta.
type counts struct {
	out    attempts
	floors map[string]time.Time            // by queue: the rank below which no job waits; no entry: no job waits
	lanes  map[string]map[string]time.Time // by queue and lane, like floors
	keys   map[string][]string             // by queue: fairness keys of waiting jobs; two stand for two or more
	due    time.Time                       // no job is due before this instant; zero: no job will be due
	// running counts the attempts that are out by job type, owner and fairness key. The ledger keeps those under a
	// control.
	running map[Subject]int
	asked   map[Kind]int    // attempts that are out; the ledger keeps those of queues that pull workers serve
	typed   map[string]bool // of a delta: queues with a job whose type a worker did not run
}

func newCounts() counts {
	return counts{out: newAttempts(), floors: map[string]time.Time{}}
}

// NoteOut notes that n more attempts of a queue are out, or fewer if n is negative.
func (c *counts) NoteOut(queue, worker string, partition int16, n int) {
	c.out.add(queue, worker, partition, n)
}

// NoteHolder notes that an attempt which counted for one worker is listed by another.
func (c *counts) NoteHolder(queue string, partition int16, from, to string) {
	if from != to {
		c.out.add(queue, from, partition, -1)
		c.out.add(queue, to, partition, 1)
	}
}

// NoteWaiting notes that a job of that fairness key and rank waits, in a lane or, if that is empty, in none.
func (c *counts) NoteWaiting(queue, lane, key string, rank time.Time) {
	c.NoteKey(queue, key)
	c.NoteFloor(queue, lane, rank)
}

// NoteKey notes that a job of a fairness key waits in a queue.
func (c *counts) NoteKey(queue, key string) {
	if known := c.keys[queue]; len(known) < several && !slices.Contains(known, key) {
		if c.keys == nil {
			c.keys = map[string][]string{}
		}
		c.keys[queue] = append(known, key)
	}
}

// several is how many fairness keys of a queue are remembered: with two, jobs no longer go out in the order of their
// ranks alone.
const several = 2

// NoteFloor notes that a job of that rank waits, in a lane or, if that is empty, in none.
func (c *counts) NoteFloor(queue, lane string, rank time.Time) {
	rank = rank.Truncate(time.Microsecond) // as the database stores it
	floors, key := c.floors, queue
	if lane != "" {
		floors, key = c.lanesOf(queue), lane
	}
	if floor, some := floors[key]; !some || rank.Before(floor) {
		floors[key] = rank
	}
}

func (c *counts) lanesOf(queue string) map[string]time.Time {
	if c.lanes == nil {
		c.lanes = map[string]map[string]time.Time{}
	}
	if c.lanes[queue] == nil {
		c.lanes[queue] = map[string]time.Time{}
	}
	return c.lanes[queue]
}

// NoteDue notes that a job is due at an instant.
func (c *counts) NoteDue(at time.Time) {
	at = at.Truncate(time.Microsecond)
	if c.due.IsZero() || at.Before(c.due) {
		c.due = at
	}
}

// NoteRunning notes that n more attempts of a class are out, or fewer if n is negative.
func (c *counts) NoteRunning(class Class, n int) {
	c.noteAsked(class.kind(), n)
	if c.running == nil {
		c.running = map[Subject]int{}
	}
	c.running[Subject{jobevent.ControlType, class.JobType}] += n
	if class.OwnerID != "" {
		c.running[Subject{jobevent.ControlOwner, class.OwnerID}] += n
	}
	if class.FairnessKey != "" {
		c.running[keySubject(class.FairnessKey)] += n
	}
}

func (c *counts) addRunning(running map[Subject]int, factor int) {
	if c.running == nil && len(running) > 0 {
		c.running = map[Subject]int{}
	}
	for s, n := range running {
		c.running[s] += factor * n
	}
}

// tidyRunning removes zeros, and returns how many entries are left.
func tidyRunning(running map[Subject]int) int {
	maps.DeleteFunc(running, func(_ Subject, n int) bool { return n == 0 })
	return len(running)
}

func (c *counts) add(other counts) {
	for queue := range other.typed {
		c.NoteSorted(queue)
	}
	for kind, n := range other.asked {
		c.noteAsked(kind, n)
	}
	c.out.addAll(other.out, 1)
	for queue, rank := range other.floors {
		c.NoteFloor(queue, "", rank)
	}
	for queue, lanes := range other.lanes {
		for lane, rank := range lanes {
			c.NoteFloor(queue, lane, rank)
		}
	}
	for queue, keys := range other.keys {
		for _, key := range keys {
			c.NoteKey(queue, key)
		}
	}
	c.addRunning(other.running, 1)
	if !other.due.IsZero() {
		c.NoteDue(other.due)
	}
}

// missing returns what has to be added to c to reach the counted rows: attempts, and jobs that wait or are due below
// its floors. A floor that is too low does no harm and stays.
func (c *counts) missing(counted counts) counts {
	drift := newCounts()
	drift.out.addAll(counted.out, 1)
	drift.out.addAll(c.out, -1)
	for queue, rank := range counted.floors {
		if floor, some := c.floors[queue]; !some || rank.Before(floor) {
			drift.NoteFloor(queue, "", rank)
		}
	}
	for queue, lanes := range counted.lanes {
		for lane, rank := range lanes {
			if floor, some := c.lanes[queue][lane]; !some || rank.Before(floor) {
				drift.NoteFloor(queue, lane, rank)
			}
		}
	}
	for queue, keys := range counted.keys {
		for _, key := range keys {
			if known := c.keys[queue]; len(known) < several && !slices.Contains(known, key) {
				drift.NoteKey(queue, key)
			}
		}
	}
	drift.addRunning(counted.running, 1)
	drift.addRunning(c.running, -1)
	for kind, n := range counted.asked {
		drift.noteAsked(kind, n-c.asked[kind])
	}
	for kind, n := range c.asked {
		if _, some := counted.asked[kind]; !some {
			drift.noteAsked(kind, -n)
		}
	}
	maps.DeleteFunc(drift.asked, func(_ Kind, n int) bool { return n == 0 })
	if !counted.due.IsZero() && (c.due.IsZero() || counted.due.Before(c.due)) {
		drift.NoteDue(counted.due)
	}
	return drift
}

// InFlight returns the attempts that are out, by queue.
func (c *counts) InFlight() map[string]int {
	byQueue := make(map[string]int, len(c.out.low))
	for at, n := range c.out.all() {
		byQueue[at.queue] += n
	}
	return byQueue
}

// Floors returns by queue the lowest rank at which a job may wait outside of all lanes.
func (c *counts) Floors() map[string]time.Time { return c.floors }

// DueFloor returns the instant before which no job is due; zero: no job will be due.
func (c *counts) DueFloor() time.Time { return c.due }

// followUps has what a transaction still has to do for the jobs that it changed. None of it is kept in the row.
type followUps struct {
	ended       []uuid.UUID       // jobs that have ended, on which others may wait
	turns       map[OrderKey]bool // ordering keys whose next job may have the turn
	transitions []Transition      // for the metrics, once they are committed
}

// Transition is a number of jobs of one type that came into a state.
type Transition struct {
	JobType string
	To      jobstate.Status
	Jobs    int
}

// NoteEnded notes that a job has ended. If it had an ordering key, the next job may have the turn.
func (f *followUps) NoteEnded(id uuid.UUID, orderingKey, ownerID *string) {
	f.ended = append(f.ended, id)
	if key, some := KeyOf(orderingKey, ownerID); some {
		f.NoteTurn(key)
	}
}

// NoteTurn notes that the next job of an ordering key may have the turn.
func (f *followUps) NoteTurn(key OrderKey) {
	if f.turns == nil {
		f.turns = map[OrderKey]bool{}
	}
	f.turns[key] = true
}

// NoteTransition notes that n jobs came into a state. A batch has few types and states, so a linear search is enough.
func (f *followUps) NoteTransition(jobType string, to jobstate.Status, n int) {
	for i := range f.transitions {
		if t := &f.transitions[i]; t.To == to && t.JobType == jobType {
			t.Jobs += n
			return
		}
	}
	f.transitions = append(f.transitions, Transition{jobType, to, n})
}

// Transitions returns all that were noted.
func (f *followUps) Transitions() []Transition { return f.transitions }

func (f *followUps) add(other followUps) {
	f.ended = append(f.ended, other.ended...)
	for _, t := range other.transitions {
		f.NoteTransition(t.JobType, t.To, t.Jobs)
	}
	for key := range other.turns {
		f.NoteTurn(key)
	}
}

func (f *followUps) none() bool {
	return len(f.ended) == 0 && len(f.turns) == 0 && len(f.transitions) == 0
}
