// Package projection keeps the API's database up to date with what the scheduler and the workers say,
// and says again what the API still waits for.
package projection

import (
	"context"
	"fmt"

	"github.com/cloudevents/sdk-go/v2/event"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// Name is the function's name.
const Name = "projection"

// Function hears of jobs, and reconciles.
type Function struct {
	store     *apidb.Store
	reconcile reconcile
}

// New makes the function on the API's database.
func New(store *apidb.Store) *Function { return &Function{store: store} }

// Host is how the function is hosted.
func (f *Function) Host() funchost.Function {
	return funchost.Function{
		Name:   Name,
		Topics: []string{jobevent.TopicStatus, jobevent.TopicAttemptLog, jobevent.TopicHeartbeat},
		Handle: f.Handle, Tick: f.Tick, Ready: f.store.Ping,
	}
}

// heard is a batch by what it is about.
type heard struct {
	statuses []apidb.StatusWord
	logs     []jobevent.AttemptLog
	beats    []apidb.Beat
}

// Handle takes job.status, attempt.log and worker.heartbeat events. Each of the three is one
// transaction: they do not depend on each other, and all may be heard again.
func (f *Function) Handle(ctx context.Context, batch []event.Event) ([]event.Event, error) {
	var h heard
	for _, e := range batch {
		if err := h.take(e); err != nil {
			return nil, err
		}
	}
	if len(h.statuses) > 0 {
		if _, err := f.store.ApplyStatuses(ctx, h.statuses); err != nil {
			return nil, err
		}
	}
	if len(h.logs) > 0 {
		if err := f.store.AddLogs(ctx, h.logs); err != nil {
			return nil, err
		}
	}
	if len(h.beats) > 0 {
		return nil, f.store.SeeWorkers(ctx, h.beats)
	}
	return nil, nil
}

func (h *heard) take(e event.Event) error {
	switch e.Type() {
	case jobevent.TypeStatus:
		status, err := jobevent.Decode[jobevent.Status](e)
		h.statuses = append(h.statuses, apidb.StatusWord{Status: status, JSON: e.Data()})
		return err
	case jobevent.TypeAttemptLog:
		log, err := jobevent.Decode[jobevent.AttemptLog](e)
		h.logs = append(h.logs, log)
		return err
	case jobevent.TypeHeartbeat:
		beat, err := jobevent.Decode[jobevent.Heartbeat](e)
		h.beats = append(h.beats, apidb.Beat{Heartbeat: beat, JSON: e.Data()})
		return err
	}
	return fmt.Errorf("take event %s of type %s: %w", e.ID(), e.Type(), jobevent.ErrInvalid)
}
