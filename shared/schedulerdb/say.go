package schedulerdb

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// Snapshot is a job as the public sees it.
type Snapshot gen.JobsSnapshotRow

// RunOrder is an attempt that goes out, or goes out again.
type RunOrder gen.JobsRunOrdersRow

// The statements return the same columns, and sqlc a type for each.
func snapshotsOf[R gen.JobsSnapshotRow | gen.JobsSaveRow](rows []R) []Snapshot {
	jobs := make([]Snapshot, len(rows))
	for i, row := range rows {
		jobs[i] = Snapshot(row)
	}
	return jobs
}

// startedSnapshot leaves out what is not told.
func startedSnapshot(row gen.JobsStartedRow) Snapshot {
	return Snapshot{
		JobID: row.JobID, TraceID: row.TraceID, Status: row.Status, Version: row.Version, Attempt: row.Attempt,
		RetryCount: row.RetryCount, DueAt: row.DueAt, CallbackDeadlineAt: row.CallbackDeadlineAt,
		CancelRequestedAt: row.CancelRequestedAt, LastCommand: row.LastCommand, History: row.History, Output: row.Output,
		ErrorCode: row.ErrorCode, ErrorMessage: row.ErrorMessage, StartedAt: row.StartedAt, FinishedAt: row.FinishedAt,
		UpdatedAt: row.UpdatedAt, Queue: row.Queue, Rank: row.Rank,
	}
}

// deletedSnapshot is all that there is to tell of a deleted job.
func deletedSnapshot(row gen.JobsDeleteRow) Snapshot {
	return Snapshot{
		JobID: row.JobID, TraceID: row.TraceID, Status: row.Status, Version: row.Version, Attempt: row.Attempt,
		ErrorCode: row.ErrorCode, FinishedAt: row.FinishedAt, UpdatedAt: row.UpdatedAt, DeletedAt: row.DeletedAt,
	}
}

// Say is what follows from a transaction: the attempts that went out, and the jobs whose state is to
// be told whole.
type Say struct {
	Runs    []RunOrder
	Jobs    []Snapshot
	Cancels []AttemptRef // attempts whose cancel is asked for again, by themselves

	Controls []jobevent.ControlApplied // versions of controls that hold

	// Read into Runs and Jobs after the commit: jobs whose attempts have gone out, and jobs that have changed.
	out, changed []uuid.UUID

	moves      []moved  // for the metrics, once they are committed
	askedAgain []string // the queues of attempts that go out again; few
}

// count tells the metrics what has been committed.
func (s *Say) count() {
	for _, m := range s.moves {
		telemetry.JobsMoved(m.jobType, string(m.to), m.n)
	}
	for _, queue := range s.askedAgain {
		telemetry.LeasesExpired(queue, 1)
	}
}

// AttemptRef names an attempt.
type AttemptRef struct {
	JobID   uuid.UUID
	TraceID uuid.UUID
	Attempt int
}

// Events builds the events in the order in which they must be published: of a job's version its
// status comes last, for a version that the API has seen is one of which nothing was lost.
func (s Say) Events(function string) ([]jobevent.Item, error) {
	most := len(s.Runs) + len(s.Cancels) + len(s.Jobs) + len(s.Controls)
	w := writer{function: function, events: make([]jobevent.Item, 0, most)}
	for _, order := range s.Runs {
		w.run(order)
	}
	for _, attempt := range s.Cancels {
		w.cancel(attempt)
	}
	for i := range s.Jobs {
		job := &s.Jobs[i]
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
	for _, c := range s.Controls {
		w.add(jobevent.TypeApplied, jobevent.Meta{
			ID: jobevent.ControlID(c.Kind, c.Name, c.Version), Key: string(c.Kind) + ":" + c.Name,
		}, c)
	}
	return w.events, w.err
}

// writer collects events and keeps the first error.
type writer struct {
	function string
	events   []jobevent.Item
	err      error
}

func (w *writer) add(typ string, m jobevent.Meta, data any) {
	if w.err != nil {
		return
	}
	m.Function = w.function
	e, err := jobevent.New(typ, m, data)
	w.events, w.err = append(w.events, e), err
}

func (w *writer) run(o RunOrder) {
	expiresAt := utc(o.ExpiresAt)
	if o.StartedAt != nil { // an attempt before this one has
		expiresAt = nil
	}
	w.add(jobevent.TypeRun, jobevent.Meta{
		ID: jobevent.RunID(o.JobID, int(o.Attempt)), JobID: o.JobID, TraceID: o.TraceID,
		Key: jobevent.RoutingKey(int32(partitionOf(o.Partition))), Queue: o.Queue,
	}, jobevent.Run{
		JobID: o.JobID, Attempt: int(o.Attempt), JobType: o.JobType, Payload: o.Payload,
		TimeoutMs: int64(o.TimeoutMs), Rank: o.Rank.UTC(), Cancel: o.CancelRequestedAt != nil,
		ExpiresAt: expiresAt, OwnerID: o.OwnerID,
	})
}

func (w *writer) cancel(a AttemptRef) {
	w.add(jobevent.TypeAttemptCancel,
		jobevent.Meta{ID: jobevent.AttemptCancelID(a.JobID, a.Attempt), JobID: a.JobID, TraceID: a.TraceID},
		jobevent.AttemptCancel{JobID: a.JobID, Attempt: a.Attempt})
}

func (w *writer) deadLetter(job *Snapshot) {
	lastError := job.lastError()
	reason := lastError.ErrorCode
	if lastError.Message != "" {
		reason += ": " + lastError.Message
	}
	w.add(jobevent.TypeDeadLettered,
		jobevent.Meta{ID: jobevent.DeadLetterID(job.JobID, int(job.Attempt)), JobID: job.JobID, TraceID: job.TraceID},
		jobevent.DeadLettered{
			JobID: job.JobID, Reason: reason, FinalRetryCount: int(job.RetryCount), FailedAt: *utc(job.FinishedAt),
		})
}

func (w *writer) status(job *Snapshot) {
	status, err := job.status()
	if err != nil && w.err == nil {
		w.err = err
	}
	id := jobevent.StatusID(job.JobID, job.Version)
	if job.Status == jobevent.StatusUnknown {
		id = jobevent.UnknownID(job.JobID, job.Version)
	}
	w.add(jobevent.TypeStatus, jobevent.Meta{ID: id, JobID: job.JobID, TraceID: job.TraceID}, status)
}

func (w *writer) deleted(job *Snapshot) {
	if w.err != nil {
		return
	}
	e, err := jobevent.NewDeleted(jobevent.Meta{Function: w.function, JobID: job.JobID, TraceID: job.TraceID}, job.Version)
	if job.FinishedAt != nil {
		end := jobevent.End{Status: job.Status, At: *job.FinishedAt, Attempt: int(job.Attempt)}
		if job.ErrorCode != nil {
			end.ErrorCode = *job.ErrorCode
		}
		jobevent.SetEnd(&e, end)
	}
	w.events, w.err = append(w.events, e), err
}

func (job *Snapshot) lastError() *jobevent.Error {
	if job.ErrorCode == nil {
		return nil
	}
	e := &jobevent.Error{ErrorCode: *job.ErrorCode}
	if job.ErrorMessage != nil {
		e.Message = *job.ErrorMessage
	}
	return e
}

// status says the history as it is stored: the hottest event is not decoded to be encoded again.
func (job *Snapshot) status() (jobevent.RawStatus, error) {
	history := make([]byte, 0, len(job.History)+2)
	history = append(append(append(history, '['), job.History...), ']')
	s := jobevent.RawStatus{History: history, Status: jobevent.Status{
		JobID: job.JobID, Version: job.Version, Status: job.Status, Attempt: int(job.Attempt),
		RetryCount: int(job.RetryCount), CallbackDeadlineAt: utc(job.CallbackDeadlineAt),
		StartedAt: utc(job.StartedAt), FinishedAt: utc(job.FinishedAt), UpdatedAt: job.UpdatedAt.UTC(),
		LastError: job.lastError(), Output: job.Output,
	}}
	if jobstate.Status(job.Status) != jobstate.Waiting {
		s.NextRunAt = utc(job.DueAt)
	}
	if job.LastCommand != nil {
		if err := json.Unmarshal(job.LastCommand, &s.LastCommand); err != nil {
			return s, fmt.Errorf("read last command of job %s: %w", job.JobID, err)
		}
	}
	return s, nil
}

func utc(at *time.Time) *time.Time {
	if at == nil || at.IsZero() {
		return nil
	}
	if at.Location() == time.UTC {
		return at
	}
	u := at.UTC()
	return &u
}
