package dispatch

import (
	"cmp"
	"slices"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// The reasons for which a job is blocked.
const (
	ByOrder      = "order"      // another job of its ordering key has the turn, or has not arrived yet
	ByDependency = "dependency" // a job that has to end first has not ended
)

// OrderKey names jobs that run one after another.
type OrderKey struct{ Key, Owner string }

// KeyOf reports whether a job has an ordering key, and returns it.
func KeyOf(key, owner *string) (OrderKey, bool) {
	if key == nil {
		return OrderKey{}, false
	}
	k := OrderKey{Key: *key}
	if owner != nil {
		k.Owner = *owner
	}
	return k, true
}

// Blocks has the reasons, other than a lack of room, that block the jobs of a batch. It is nil for a batch whose jobs
// have no dependency and no ordering key.
type Blocks struct {
	Arrived      map[uuid.UUID]bool            // jobs all of whose predecessors in their ordering key have arrived
	Dependencies map[uuid.UUID][]Dependency    // jobs that have to end first
	Gaps         []*jobevent.Created           // jobs whose predecessor has not arrived
	TooLate      []uuid.UUID                   // jobs that had failed before other jobs were accepted that depend on them
	ended        map[uuid.UUID]jobstate.Status // the states of the jobs in `after` that have ended
	Overtaken    []OrderKey                    // keys whose turn has to be yielded to a new job
	lines        map[OrderKey]Line
	blockedBy    map[uuid.UUID]string
}

// Dependency is a job that has to end first, and how it has to end.
type Dependency struct {
	AfterID   uuid.UUID
	Condition jobstate.Condition
}

// Line is the state of an ordering key.
type Line struct {
	HasTurn bool  // a job has the turn
	YieldAt int64 // number of the job that has the turn, if it yields it to a lower one; 0: it does not
	First   int64 // number of the first job that waits for it; 0: none does
}

// Question names the data that Decide needs about a batch.
type Question struct {
	After        []uuid.UUID // report to NoteEnd which of these jobs have ended
	Predecessors []uuid.UUID // report to NoteArrived those before which no job of their key is missing
	Keys, Owners []string    // report the states of these keys to NoteLine
}

// Ask returns what must be read for a batch, and the Blocks that take the answers; nil if nothing must be read.
func Ask(jobs []jobevent.Created) (Question, *Blocks) {
	var q Question
	for i := range jobs {
		job := &jobs[i]
		q.After = append(q.After, job.After...)
		if job.OrderingKey == "" {
			continue
		}
		q.Keys, q.Owners = append(q.Keys, job.OrderingKey), append(q.Owners, job.OwnerID)
		if job.OrderAfter != nil {
			q.Predecessors = append(q.Predecessors, *job.OrderAfter)
		}
	}
	if len(q.After) == 0 && len(q.Keys) == 0 {
		return q, nil
	}
	return q, &Blocks{
		Arrived: map[uuid.UUID]bool{}, Dependencies: map[uuid.UUID][]Dependency{},
		ended: map[uuid.UUID]jobstate.Status{}, lines: map[OrderKey]Line{}, blockedBy: map[uuid.UUID]string{},
	}
}

// NoteEnd takes the state of a job on which others depend.
func (b *Blocks) NoteEnd(id uuid.UUID, status jobstate.Status) {
	if status.Terminal() {
		b.ended[id] = status
	}
}

// NoteArrived notes that no predecessor of a job is missing.
func (b *Blocks) NoteArrived(id uuid.UUID) { b.Arrived[id] = true }

// NoteLine takes the state of an ordering key.
func (b *Blocks) NoteLine(key OrderKey, line Line) { b.lines[key] = line }

// Decide takes the jobs in the order in which the API accepted them.
func (b *Blocks) Decide(jobs []jobevent.Created) {
	accepted := make([]*jobevent.Created, len(jobs))
	for i := range jobs {
		accepted[i] = &jobs[i]
	}
	slices.SortStableFunc(accepted, func(a, b *jobevent.Created) int { return cmp.Compare(a.OrderNumber, b.OrderNumber) })
	for _, job := range accepted {
		b.depend(job)
		if job.OrderingKey != "" {
			b.lineUp(job)
		}
	}
}

func (b *Blocks) depend(job *jobevent.Created) {
	if job.IsFanOut() { // it waits for the jobs of its elements
		b.blockedBy[job.JobID] = ByDependency
	}
	seen := make(map[uuid.UUID]bool, len(job.After))
	for i, id := range job.After {
		condition := job.Condition(i)
		status, ended := b.ended[id]
		if seen[id] || ended && condition.Met(status) {
			continue
		}
		seen[id] = true
		if ended {
			b.TooLate = append(b.TooLate, id)
		}
		b.Dependencies[job.JobID] = append(b.Dependencies[job.JobID], Dependency{id, condition})
		b.blockedBy[job.JobID] = ByDependency
	}
}

// lineUp gives the job the turn if it is free and no earlier job of the key waits for it or is missing. Otherwise the
// job waits for the turn.
func (b *Blocks) lineUp(job *jobevent.Created) {
	key := OrderKey{job.OrderingKey, job.OwnerID}
	if job.OrderAfter != nil && !b.Arrived[*job.OrderAfter] {
		b.Gaps = append(b.Gaps, job)
	} else {
		b.Arrived[job.JobID] = true
	}
	line := b.lines[key]
	isFirst := line.First == 0 || job.OrderNumber < line.First
	if line.HasTurn || !isFirst || !b.Arrived[job.JobID] {
		if line.HasTurn && job.OrderNumber < line.YieldAt {
			b.Overtaken = append(b.Overtaken, key)
		}
		b.blockedBy[job.JobID] = ByOrder
		if isFirst {
			line.First = job.OrderNumber
		}
	} else {
		line.HasTurn = true // Decide takes the lowest number first, so no later one asks the job to yield
	}
	b.lines[key] = line
}

// By returns what blocks a job; empty: nothing.
func (b *Blocks) By(id uuid.UUID) string {
	if b == nil {
		return ""
	}
	return b.blockedBy[id]
}
