package jobstore

import (
	"strings"
	"time"
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

// BatchSource begins the source of an event that stands for the end of a batch.
const BatchSource = "/jobweaver/batch/"

// IsOurs reports whether only JobWeaver's own functions may use an event's source.
func IsOurs(eventSource string) bool {
	return strings.HasPrefix(eventSource, ScheduleSource) || strings.HasPrefix(eventSource, BatchSource)
}
