package emit

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// writer collects events and keeps the first error.
type writer struct {
	function string
	events   []jobevent.Item
	err      error
	spec     struct { // that of the last order, as most have the same
		bytes json.RawMessage
		read  *jobevent.Spec
	}
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
	expiresAt := jobevent.UTC(o.ExpiresAt)
	if o.StartedAt != nil { // an earlier attempt has started, so the job does not expire any more
		expiresAt = nil
	}
	partition := int32(0)
	if o.Partition != nil {
		partition = int32(*o.Partition)
	}
	share := o.FairnessKey
	if share == o.OwnerID {
		share = "" // the default
	}
	if w.spec.read == nil || !bytes.Equal(w.spec.bytes, o.Spec) {
		spec, err := jobevent.ReadSpec(o.Spec)
		if err != nil {
			w.err = cmp.Or(w.err, fmt.Errorf("order an attempt of job %s: %w", o.JobID, err))
			return
		}
		w.spec.bytes, w.spec.read = o.Spec, &spec
	}
	w.add(jobevent.TypeRun, jobevent.Meta{
		JobID: o.JobID, TraceID: o.TraceID, Key: jobevent.RoutingKey(partition), Queue: o.Queue,
	}, &jobevent.Run{
		JobID: o.JobID, Attempt: int(o.Attempt), JobType: o.JobType, Payload: o.Payload,
		Spec: *w.spec.read, Rank: o.Rank.UTC(), Cancel: o.CancelRequestedAt != nil,
		ExpiresAt: expiresAt, OwnerID: o.OwnerID, Parents: o.Parents, FairnessKey: share, Event: o.Event,
		Prompt: o.Prompt,
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
			JobID: job.JobID, Reason: reason, FinalRetryCount: int(job.RetryCount), FailedAt: *jobevent.UTC(job.FinishedAt),
		})
}

func (w *writer) status(job *Snapshot) {
	status, err := job.status()
	if err != nil && w.err == nil {
		w.err = err
	}
	meta := jobevent.Meta{ID: jobevent.StatusID(job.JobID, job.Version), JobID: job.JobID, TraceID: job.TraceID}
	if job.Status != jobevent.StatusUnknown {
		w.add(jobevent.TypeStatus, meta, status)
		return
	}
	meta.ID = jobevent.UnknownID(job.JobID, job.Version)
	if w.add(jobevent.TypeStatus, meta, status); w.err == nil {
		w.events[len(w.events)-1] = w.events[len(w.events)-1].ForFunctions()
	}
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

// status takes the history over as it is stored. It is the most frequent event, so it is not decoded only to be encoded
// again.
func (job *Snapshot) status() (jobevent.RawStatus, error) {
	history := make([]byte, 0, len(job.History)+2)
	history = append(append(append(history, '['), job.History...), ']')
	s := jobevent.RawStatus{History: history, Status: jobevent.Status{
		JobID: job.JobID, Version: job.Version, Status: job.Status, Attempt: int(job.Attempt),
		RetryCount: int(job.RetryCount), CallbackDeadlineAt: jobevent.UTC(job.CallbackDeadlineAt),
		StartedAt: jobevent.UTC(job.StartedAt), FinishedAt: jobevent.UTC(job.FinishedAt), UpdatedAt: job.UpdatedAt.UTC(),
		LastError: job.lastError(), Output: job.Output,
	}}
	if jobstate.Status(job.Status) != jobstate.Waiting {
		s.NextRunAt = jobevent.UTC(job.DueAt)
	}
	if job.LastCommand != nil {
		if err := json.Unmarshal(job.LastCommand, &s.LastCommand); err != nil {
			return s, fmt.Errorf("read last command of job %s: %w", job.JobID, err)
		}
	}
	return s, nil
}
