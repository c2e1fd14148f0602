package jobstore

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
)

// ScheduleSource begins the source of an event that stands for a tick.
const ScheduleSource = "/jobweaver/cron/"

// ScheduledBy is the tick of a schedule that made a job.
type ScheduledBy struct {
	Name string
	At   time.Time
}

// scheduledBy reads the tick from the event with which the job was submitted; nil if that was not a tick.
func scheduledBy(source, id *string) *ScheduledBy {
	if source == nil || id == nil || !strings.HasPrefix(*source, ScheduleSource) {
		return nil
	}
	at, err := time.Parse(time.RFC3339Nano, *id)
	_, name, ok := strings.Cut(strings.TrimPrefix(*source, ScheduleSource), "/")
	if err != nil || !ok {
		return nil
	}
	return &ScheduledBy{Name: name, At: at}
}

// Event is the identity of a CloudEvent that submitted a job.
type Event struct{ Source, ID string }

func (s *Store) jobOfEvent(ctx context.Context, owner apidb.Owner, e Event) (uuid.UUID, error) {
	return s.q.JobOfEvent(ctx, gen.JobOfEventParams{
		EventOwners: []string{"", owner.ID()}, EventSource: e.Source, EventID: e.ID, Owner: owner.Filter(),
	})
}

// BatchSource begins the source of an event that stands for the end of a batch.
const BatchSource = "/jobweaver/batch/"

// ChildSource begins the source of an event that stands for a call of a job by the handler of another, its parent. The
// parent's id follows. The id of the event is the number of the call, a colon, and its name in the parent.
const ChildSource = "/jobweaver/child/"

// parentOf returns the parent of a job that a handler called; nil: none did.
func parentOf(source *string) *uuid.UUID {
	if source == nil || !strings.HasPrefix(*source, ChildSource) {
		return nil
	}
	id, err := uuid.Parse((*source)[len(ChildSource):])
	if err != nil {
		return nil
	}
	return &id
}

// IsOurs reports whether only JobWeaver's own functions may use an event's source.
func IsOurs(eventSource string) bool {
	return strings.HasPrefix(eventSource, ScheduleSource) ||
		strings.HasPrefix(eventSource, BatchSource) || strings.HasPrefix(eventSource, ChildSource)
}
