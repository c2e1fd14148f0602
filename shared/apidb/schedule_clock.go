package apidb

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
)

// scheduleSource begins the source of the event that is a tick.
const scheduleSource = "/jobweaver/cron/"

// ScheduledBy is the tick that a job was made of.
type ScheduledBy struct {
	Name string
	At   time.Time
}

// scheduledBy reads it from the event that brought the job; nil where that was no tick.
func scheduledBy(source, id *string) *ScheduledBy {
	if source == nil || id == nil || !strings.HasPrefix(*source, scheduleSource) {
		return nil
	}
	at, err := time.Parse(time.RFC3339Nano, *id)
	_, name, ok := strings.Cut(strings.TrimPrefix(*source, scheduleSource), "/")
	if err != nil || !ok {
		return nil
	}
	return &ScheduledBy{Name: name, At: at}
}

// IsOurs tells whether an event's source is one that only our own functions may have.
func IsOurs(eventSource string) bool { return strings.HasPrefix(eventSource, scheduleSource) }

// forgetPage is how many schedules are looked at in one statement that forgets ticks.
const forgetPage = 100

// ForgetTicks drops the ticks that are older than thirty days or beyond a schedule's last thousand, of
// the schedules after one. last is where to go on; uuid.Nil after all of them.
func (s *Store) ForgetTicks(ctx context.Context, after uuid.UUID) (last uuid.UUID, err error) {
	ids, err := s.q.TicksForget(ctx, gen.TicksForgetParams{AfterID: after, MaxSchedules: forgetPage})
	if err != nil || len(ids) < forgetPage {
		return uuid.Nil, Classify("forget ticks", err)
	}
	return ids[len(ids)-1], nil
}
