// Package projection stores what the scheduler and the workers publish in the API's database, and republishes the
// requests of the API that the scheduler has not confirmed.
package projection

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/rejectedstore"
	"github.com/jobweaver/jobweaver/shared/apidb/statusstore"
	"github.com/jobweaver/jobweaver/shared/apidb/workerstore"
	"github.com/jobweaver/jobweaver/shared/apievent"
	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// Name is the function's name.
const Name = "projection"

// Function consumes the events about jobs, and reconciles.
type Function struct {
	store      stores
	leastAge   time.Duration // at which a job without a status is published again
	newBroker  bool          // the first walk over the jobs in flight is about all of them
	reconcile  reconcile
	expiry     expiry
	statistics statistics

	expiring, counting telemetry.Trouble
}

// New returns the function on the API's database.
func New(cfg Config, db *apidb.Store) (*Function, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	least := leastAge
	if cfg.Broker {
		least = leastAgeBroker
	}
	return &Function{
		store: newStores(db), leastAge: least, newBroker: cfg.NewBroker, expiry: newExpiry(cfg),
		expiring: telemetry.Trouble{What: "delete old jobs"},
		counting: telemetry.Trouble{What: "count for the statistics"},
	}, nil
}

// Host is how the function is hosted.
func (f *Function) Host() funchost.Function {
	return funchost.Function{
		Name: Name,
		Topics: []string{
			jobevent.TopicStatus, jobevent.TopicStatuses, jobevent.TopicAttemptLog, jobevent.TopicHeartbeat,
			jobevent.TopicControlApplied, jobevent.TopicDeadLetter,
		},
		Skips:  func(topic, typ string) bool { return topic == jobevent.TopicDeadLetter && typ != jobevent.TypeRejected },
		Handle: f.Handle, Run: f.Run, Tick: f.Tick, Ready: f.store.Ping, Pool: f.store.Connections, Metrics: f.countMetrics,
	}
}

// Run listens for announcements of processes whose clients watch jobs. While there are such processes, the store
// notifies them of changes.
func (f *Function) Run(ctx context.Context, _ funchost.Publish) error {
	funchost.Listen(ctx, make(chan struct{}, 1), f.store.ListenWatchers)
	return nil
}

// contents has the items of a batch of events, by kind.
type contents struct {
	statuses   []statusstore.PublishedStatus
	unknown    []jobevent.ReportJob // that the scheduler does not know
	gone       []statusstore.Gone
	logs       []jobevent.AttemptLog
	heartbeats []workerstore.Heartbeat
	applied    []jobevent.ControlApplied
	rejected   []rejectedstore.Rejected
}

// Handle handles job.status, job.deleted, attempt.log, worker.heartbeat, control.applied and record.rejected events. It
// stores each kind in a transaction of its own: the kinds do not depend on each other, and any event may be delivered
// again.
func (f *Function) Handle(ctx context.Context, batch []jobevent.Item) ([]jobevent.Item, error) {
	h := contents{statuses: make([]statusstore.PublishedStatus, 0, len(batch))} // most of it
	for _, e := range batch {
		if err := h.take(e); err != nil {
			return nil, err
		}
	}
	if len(h.statuses) > 0 {
		if _, err := f.store.statuses.ApplyStatuses(ctx, h.statuses); err != nil {
			return nil, err
		}
	}
	if len(h.unknown) > 0 {
		if err := f.store.statuses.ForgetStatuses(ctx, h.unknown); err != nil {
			return nil, err
		}
	}
	outcomes, err := f.dueCallbacks(ctx, h.statuses)
	if err != nil {
		return nil, err
	}
	if len(h.logs) > 0 {
		if err := f.store.logs.Add(ctx, h.logs); err != nil {
			return nil, err
		}
	}
	if len(h.gone) > 0 {
		if _, err := f.store.statuses.ForgetJobs(ctx, h.gone); err != nil {
			return nil, err
		}
	}
	if len(h.heartbeats) > 0 {
		if err := f.store.workers.See(ctx, h.heartbeats); err != nil {
			return nil, err
		}
		if err := f.store.types.Learn(ctx, h.heartbeats); err != nil {
			return nil, err
		}
	}
	if len(h.applied) > 0 {
		if err := f.store.controls.ControlsApplied(ctx, h.applied); err != nil {
			return nil, err
		}
	}
	if len(h.rejected) > 0 {
		if _, err := f.store.rejected.Add(ctx, h.rejected); err != nil {
			return nil, err
		}
	}
	return outcomes, nil
}

// clocksDiffer is how far this process's clock may be behind the database's. The database decides what is due; with a
// larger difference this process would notice it late.
const clocksDiffer = time.Minute

// dueCallbacks returns the outcomes of attempts that wait past the deadline of their callback. The scheduler asks for
// them by publishing the WAITING status again.
func (f *Function) dueCallbacks(ctx context.Context, words []statusstore.PublishedStatus) ([]jobevent.Item, error) {
	var waiting []jobevent.Status
	for _, word := range words {
		if at := word.CallbackDeadlineAt; at != nil && time.Until(*at) < clocksDiffer {
			waiting = append(waiting, word.Status)
		}
	}
	if len(waiting) == 0 {
		return nil, nil
	}
	due, err := f.store.callbacks.Due(ctx, waiting)
	if err != nil {
		return nil, err
	}
	return eventsOf(due, apievent.Callback)
}

func (h *contents) take(e jobevent.Item) error {
	var named bool
	var err error
	switch e.Type() {
	case jobevent.TypeStatus:
		var status jobevent.RawStatus // its history is stored unchanged
		status, err = jobevent.Decode[jobevent.RawStatus](e)
		named = status.JobID != uuid.Nil && status.Version > 0
		if err == nil && !bytes.HasPrefix(status.History, []byte("[")) { // reading the job would fail
			err = fmt.Errorf("read %s: its history is not a list: %w", e.ID(), jobevent.ErrInvalid)
		}
		if status.Status.Status == jobevent.StatusUnknown {
			h.unknown = append(h.unknown, jobevent.ReportJob{JobID: status.JobID, Version: status.Version})
			break
		}
		h.statuses = append(h.statuses, statusstore.PublishedStatus{Status: status.WithoutHistory(), JSON: e.Data()})
	case jobevent.TypeDeleted:
		var gone statusstore.Gone
		gone.Version, err = jobevent.DeletedVersion(e)
		gone.JobID = e.JobID()
		named = gone.JobID != uuid.Nil
		if err == nil {
			gone.End, err = jobevent.EndOf(e)
		}
		h.gone = append(h.gone, gone)
	case jobevent.TypeAttemptLog:
		var log jobevent.AttemptLog
		log, err = jobevent.Decode[jobevent.AttemptLog](e)
		named = log.JobID != uuid.Nil
		h.logs = append(h.logs, log)
	case jobevent.TypeHeartbeat:
		var heartbeat jobevent.Heartbeat
		heartbeat, err = jobevent.Decode[jobevent.Heartbeat](e)
		named = heartbeat.WorkerID != ""
		h.heartbeats = append(h.heartbeats, workerstore.Heartbeat{Heartbeat: heartbeat, JSON: e.Data()})
	case jobevent.TypeApplied:
		var applied jobevent.ControlApplied
		applied, err = jobevent.Decode[jobevent.ControlApplied](e)
		named = applied.Name != "" && applied.Version > 0
		h.applied = append(h.applied, applied)
	case jobevent.TypeRejected:
		var rejected jobevent.Rejected
		rejected, err = jobevent.Decode[jobevent.Rejected](e)
		named = rejected.Topic != ""
		function := strings.TrimPrefix(e.Source(), "/jobweaver/")
		h.rejected = append(h.rejected, rejectedstore.NewRecord(function, rejected, e.TraceID(), e.Time()))
	}
	if err == nil && !named {
		err = fmt.Errorf("read event %s of type %s, which names no subject: %w", e.ID(), e.Type(), jobevent.ErrInvalid)
	}
	return err
}
