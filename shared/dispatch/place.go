package dispatch

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// rankPerPriority is what one level of priority is worth in waiting time.
const rankPerPriority = 10 * time.Second

// Rank returns the instant that orders a queue for ever: one level of priority is worth ten seconds of waiting.
func Rank(readyAt time.Time, priority int) time.Time {
	return readyAt.Add(-time.Duration(priority) * rankPerPriority)
}

func rankOf(job *jobevent.Created, now time.Time) time.Time {
	ready := job.CreatedAt
	if ready.IsZero() || ready.After(now) {
		ready = now
	}
	if job.RunAt != nil && job.RunAt.After(ready) {
		ready = *job.RunAt
	}
	return Rank(ready, job.Priority)
}

// Arrival is a new job and where it begins.
type Arrival struct {
	*jobevent.Created
	Rank      time.Time
	Lane      string
	Status    jobstate.Status // SCHEDULED, PENDING, QUEUED or WAITING
	Partition *int16          // to which its first attempt goes; QUEUED only
}

// Place decides where each new job begins, in the order of their ranks. A job that is due, that nothing blocks, and
// that finds room while no other job of its queue is ready, goes out at once. The caller enters delta when the jobs are
// inserted. If r is nil, none goes out at once.
func Place(jobs []jobevent.Created, b *Blocks, l *Ledger, r *Room) (arrivals []Arrival, delta Delta) {
	arrivals, due := make([]Arrival, len(jobs)), map[string]int{}
	for i := range jobs {
		job := &jobs[i]
		arrivals[i] = Arrival{
			Created: job, Rank: rankOf(job, l.At), Lane: l.laneOf(job.Queue, job.JobType, job.OwnerID, ""),
			Status: jobstate.Pending,
		}
		if (job.RunAt == nil || !job.RunAt.After(l.At)) && b.By(job.JobID) == "" && !job.IsFanOut() {
			due[job.Queue]++
		}
	}
	slices.SortStableFunc(arrivals, func(a, b Arrival) int {
		return cmp.Or(a.Rank.Compare(b.Rank), bytes.Compare(a.JobID[:], b.JobID[:]))
	})
	places := map[string]*places{}
	for queue, n := range due {
		if r != nil && !l.HasReady(queue) {
			places[queue] = newPlaces(l, queue, l.sortTargets(queue, r.Take(queue, min(n, l.RoomOfQueue(queue)))))
		}
	}
	delta = NewDelta()
	for i := range arrivals {
		job := &arrivals[i]
		switch {
		case job.IsFanOut():
			job.Status = jobstate.Waiting
			continue
		case job.RunAt != nil && job.RunAt.After(l.At):
			job.Status = jobstate.Scheduled
			delta.NoteDue(*job.RunAt)
		case b.By(job.JobID) != "":
		case job.start(l, places[job.Queue]):
			delta.NoteOut(job.Queue, "", *job.Partition, 1)
			continue
		default:
			job.Lane = l.laneOf(job.Queue, job.JobType, job.OwnerID, "") // start may have sorted the queue
			delta.NoteWaiting(job.Queue, job.Lane, FairnessKeyOf(job.Created), job.Rank)
		}
		if job.ExpiresAt != nil {
			delta.NoteDue(*job.ExpiresAt)
		}
	}
	for queue, left := range places {
		r.GiveBack(queue, left.free) // of jobs that a control holds back
	}
	return arrivals, delta
}

// start lets a job that is ready go out at once, if its controls and the places of its queue allow it.
func (a *Arrival) start(l *Ledger, p *places) bool {
	if p == nil || !l.allows(classOf(a.Created)) {
		return false
	}
	to, some := p.take(a.JobType, a.OwnerID, "")
	if !some {
		return false
	}
	a.Status, a.Partition = jobstate.Queued, &to.Partition
	l.noteStarts(classOf(a.Created), 1)
	l.NoteStarts(a.Queue, 1)
	return true
}
