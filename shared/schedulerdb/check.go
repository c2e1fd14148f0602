package schedulerdb

import (
	"fmt"
	"math"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// These checks refuse input that the database's own checks would accept. Every error wraps jobevent.ErrInvalid.

// nameMost is the most bytes of a name. Every status of a job repeats its names, up to a hundred times.
const nameMost = 255

func checkCreated(job jobevent.Created) error {
	if job.JobID == uuid.Nil {
		return fmt.Errorf("accept job without id: %w", jobevent.ErrInvalid)
	}
	if !namesTopic(job.Queue) {
		return fmt.Errorf("accept job of queue %q: %w", jobevent.CleanText(job.Queue, nameMost), jobevent.ErrInvalid)
	}
	if n := len(job.Conditions); n > 0 && n != len(job.After) {
		return fmt.Errorf("accept job after %d others with %d conditions: %w", len(job.After), n, jobevent.ErrInvalid)
	}
	if err := job.Check(); err != nil {
		return fmt.Errorf("accept job %s: %w", job.JobID, err)
	}
	return checkInstants(&job.CreatedAt, job.RunAt, job.ExpiresAt)
}

func checkCommand(c jobevent.Command) error {
	if jobevent.CleanText(c.Command, nameMost) == jobevent.CommandReschedule && c.RunAt == nil {
		return fmt.Errorf("reschedule job %s without an instant: %w", c.JobID, jobevent.ErrInvalid)
	}
	if err := checkInstants(c.RunAt); err != nil {
		return fmt.Errorf("accept command for job %s: %w", c.JobID, err)
	}
	if c.Change == nil {
		if jobevent.CleanText(c.Command, nameMost) == jobevent.CommandChange {
			return fmt.Errorf("change job %s to nothing: %w", c.JobID, jobevent.ErrInvalid)
		}
		return nil
	}
	if !namesTopic(c.Change.Queue) {
		return fmt.Errorf("change job %s to an impossible queue: %w", c.JobID, jobevent.ErrInvalid)
	}
	if c.Change.Spec != nil {
		possible := jobevent.Spec{TimeoutMs: 1}
		if _, err := possible.Change(c.Change.Spec); err != nil {
			return fmt.Errorf("change job %s: %w", c.JobID, err)
		}
	}
	if err := checkInstants(c.Change.RunAt, c.Change.ExpiresAt); err != nil {
		return fmt.Errorf("change job %s: %w", c.JobID, err)
	}
	return nil
}

// namesTopic reports whether a queue's name has only characters that a topic's name may have. The database checks its
// length.
func namesTopic(queue string) bool {
	for _, c := range []byte(queue) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}

// cleanOutcomes removes characters that the database refuses: an outcome must not be lost because of one.
func cleanOutcomes(reported []Outcome) ([]Outcome, error) {
	outcomes := make([]Outcome, len(reported))
	for i, o := range reported {
		if err := checkInstants(o.StartedAt, o.FinishedAt); err != nil {
			return nil, fmt.Errorf("accept outcome of job %s: %w", o.JobID, err)
		}
		o.WorkerID, o.ErrorCode = jobevent.CleanText(o.WorkerID, nameMost), jobevent.CleanText(o.ErrorCode, nameMost)
		o.RanBy = jobevent.CleanText(o.RanBy, nameMost)
		o.StartedAt, o.FinishedAt = storable(o.StartedAt), storable(o.FinishedAt)
		o.Message = jobevent.CleanMessage(o.Message)
		outcomes[i] = o
	}
	return outcomes, nil
}

func checkHeartbeat(heartbeat jobevent.Heartbeat) error {
	if id := heartbeat.WorkerID; id == "" || id != jobevent.CleanText(id, nameMost) {
		return fmt.Errorf("accept heartbeat of worker %q: %w", jobevent.CleanText(id, nameMost), jobevent.ErrInvalid)
	}
	for _, attempt := range heartbeat.Attempts {
		if err := checkInstants(attempt.StartedAt); err != nil {
			return fmt.Errorf("accept heartbeat of worker %s: %w", heartbeat.WorkerID, err)
		}
	}
	return nil
}

// checkInstants refuses instants near the bounds. The database would store them, but JSON has years of four digits
// only, and a delay is still to be added.
func checkInstants(instants ...*time.Time) error {
	for _, at := range instants {
		if at != nil && !at.IsZero() && (at.Year() < 1970 || at.Year() > 9000) {
			return fmt.Errorf("accept instant of the year %d: %w", at.Year(), jobevent.ErrInvalid)
		}
	}
	return nil
}

// storable returns an instant as a column can have it, so that what is published first and what is read later agree.
func storable(at *time.Time) *time.Time {
	if at == nil || at.Nanosecond()%1000 == 0 {
		return at
	}
	stored := at.Truncate(time.Microsecond)
	return &stored
}

// int16Of and int32Of clamp a number to the range of its column. A clamped number does no harm: either a CHECK refuses
// it, or no row has it.
func int16Of(n int) int16 { return int16(min(max(n, math.MinInt16), math.MaxInt16)) }

func int32Of[T int | int64](n T) int32 {
	return int32(min(max(int64(n), math.MinInt32), math.MaxInt32))
}
