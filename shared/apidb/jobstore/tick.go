package jobstore

import (
	"strings"
	"time"
)

// ScheduleSource begins the source of the event that is a tick.
const ScheduleSource = "/jobweaver/cron/"

// ScheduledBy is the tick of a schedule that made a job.
type ScheduledBy struct {
	Name string
	At   time.Time
}

// scheduledBy reads it from the event that brought the job; nil where that was no tick.
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

// IsOurs reports whether an event's source is one that only our own functions may have.
func IsOurs(eventSource string) bool { return strings.HasPrefix(eventSource, ScheduleSource) }
