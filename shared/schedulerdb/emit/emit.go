// Package emit builds the events that follow from a transaction of the scheduler.
package emit

import (
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/internal/gen"
)

// Effects has what a transaction's caller must publish: attempts that are dispatched, and jobs whose whole state has
// changed.
type Effects struct {
	Runs     []RunOrder
	Jobs     []Snapshot
	Cancels  []AttemptRef              // attempts whose cancel is asked for again, without their job's status
	Controls []jobevent.ControlApplied // versions of controls that are in force
	Drains   []Drain
	Follows  []Follow
}

// Drain is the order to a worker to drain, or to take attempts again.
type Drain struct {
	WorkerID string
	Drain    bool
	Version  int64 // of the worker's control; zero: it has none
}

// Follow is the order to a worker to serve the created queues, beside its own, and to drain or not as before.
type Follow struct {
	Drain
	Queues   []jobevent.CreatedQueue
	Revision int64 // of the controls
}

// RunOrder is an attempt that is dispatched, or about which the watchdog asks. Its Spec has the bytes of a
// jobevent.Spec. An attempt is Prompt if it has waited, since others may wait for its end.
type RunOrder gen.JobsRunOrdersRow

// Snapshot is the state of a job at one version. Its History has the entries, joined by commas.
type Snapshot gen.JobsSnapshotRow

// AttemptRef names an attempt.
type AttemptRef struct {
	JobID   uuid.UUID
	TraceID uuid.UUID
	Attempt int
}

// Add appends the effects of a further step.
func (e *Effects) Add(more Effects) {
	e.Runs, e.Cancels = append(e.Runs, more.Runs...), append(e.Cancels, more.Cancels...)
	e.Jobs, e.Controls = append(e.Jobs, more.Jobs...), append(e.Controls, more.Controls...)
	e.Drains, e.Follows = append(e.Drains, more.Drains...), append(e.Follows, more.Follows...)
}

// Events builds the events of a function in the order in which they must be published. The status of a job's version
// comes last: if the API has seen a version, no event of that version was lost.
// Why QUEUED and PENDING are not among them: docs/decisions/dispatch.md#queued-and-pending-have-no-event-of-their-own
func (e Effects) Events(function string) ([]jobevent.Item, error) {
	most := len(e.Runs) + len(e.Cancels) + len(e.Jobs) + len(e.Controls) + len(e.Drains) + len(e.Follows)
	w := writer{function: function, events: make([]jobevent.Item, 0, most)}
	for _, order := range e.Runs {
		w.run(order)
	}
	for _, attempt := range e.Cancels {
		w.cancel(attempt)
	}
	for i := range e.Jobs {
		job := &e.Jobs[i]
		if job.DeletedAt != nil {
			w.deleted(job)
			continue
		}
		if job.CancelRequestedAt != nil {
			w.cancel(AttemptRef{JobID: job.JobID, TraceID: job.TraceID, Attempt: int(job.Attempt)})
		}
		if jobstate.Status(job.Status) == jobstate.Failed {
			w.deadLetter(job)
		}
		w.status(job)
	}
	for _, d := range e.Drains {
		w.add(jobevent.TypeAttemptCancel,
			jobevent.Meta{ID: jobevent.DrainID(d.WorkerID, d.Version), Key: d.WorkerID},
			jobevent.AttemptCancel{WorkerID: d.WorkerID, Drain: d.Drain, DrainVersion: d.Version})
	}
	for _, f := range e.Follows {
		w.add(jobevent.TypeAttemptCancel,
			jobevent.Meta{ID: jobevent.FollowID(f.WorkerID, f.Revision), Key: f.WorkerID},
			jobevent.AttemptCancel{
				WorkerID: f.WorkerID, Drain: f.Drain.Drain, DrainVersion: f.Version,
				Follows: jobevent.QueuesDigest(f.Queues), Queues: f.Queues,
			})
	}
	for _, c := range e.Controls {
		w.add(jobevent.TypeApplied, jobevent.Meta{
			ID: jobevent.ControlID(c.Kind, c.Name, c.Version), Key: string(c.Kind) + ":" + c.Name,
		}, c)
	}
	return w.events, w.err
}
