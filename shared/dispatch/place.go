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
	Status    jobstate.Status // SCHEDULED, PENDING or QUEUED
	Partition *int16          // to which its first attempt goes; QUEUED only
}

// Place decides where each new job begins, in the order of their ranks. A job that is due, that nothing blocks, and
// that finds room while no other job of its queue is ready, goes out at once. delta is to be entered when the jobs are
// inserted.
func Place(jobs []jobevent.Created, b *Blocks, l *Ledger, r *Room) (arrivals []Arrival, delta Delta) {
	arrivals, due := make([]Arrival, len(jobs)), map[string]int{}
	for i := range jobs {
		job := &jobs[i]
		arrivals[i] = Arrival{
			Created: job, Rank: rankOf(job, l.At), Lane: l.controls.laneOf(job.JobType, job.OwnerID), Status: jobstate.Pending,
		}
		if (job.RunAt == nil || !job.RunAt.After(l.At)) && b.By(job.JobID) == "" {
			due[job.Queue]++
		}
	}
	slices.SortStableFunc(arrivals, func(a, b Arrival) int {
		return cmp.Or(a.Rank.Compare(b.Rank), bytes.Compare(a.JobID[:], b.JobID[:]))
	})
	targets := map[string][]Target{}
	for queue, n := range due {
		if !l.HasReady(queue) {
			targets[queue] = r.Take(queue, min(n, l.RoomOfQueue(queue)))
		}
	}
	delta = NewDelta()
	for i := range arrivals {
		job := &arrivals[i]
		switch to := targets[job.Queue]; {
		case job.RunAt != nil && job.RunAt.After(l.At):
			job.Status = jobstate.Scheduled
			delta.NoteDue(*job.RunAt)
		case b.By(job.JobID) != "":
		case len(to) > 0 && l.allows(classOf(job.Created)):
			targets[job.Queue] = to[1:]
			job.Status, job.Partition = jobstate.Queued, &to[0].Partition
			delta.NoteOut(job.Queue, "", to[0].Partition, 1)
			l.noteStart(classOf(job.Created))
			l.NoteStarts(job.Queue, 1)
			continue
		default:
			delta.NoteWaiting(job.Queue, job.Lane, FairnessKeyOf(job.Created), job.Rank)
		}
		if job.ExpiresAt != nil {
			delta.NoteDue(*job.ExpiresAt)
		}
	}
	for queue, left := range targets {
		r.GiveBack(queue, left) // of jobs that a control holds back
	}
	return arrivals, delta
}
