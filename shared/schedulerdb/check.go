package schedulerdb

import (
	"fmt"
	"math"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// These checks refuse what the database cannot refuse by itself. Every error wraps jobevent.ErrInvalid.

// nameMost is how many bytes a name has: they are repeated in every status of their job, up to a hundred times.
const nameMost = 255

func checkCreated(job jobevent.Created) error {
	if job.JobID == uuid.Nil {
		return fmt.Errorf("take job without id: %w", jobevent.ErrInvalid)
	}
	if !namesTopic(job.Queue) {
		return fmt.Errorf("take job of queue %q: %w", jobevent.CleanText(job.Queue, nameMost), jobevent.ErrInvalid)
	}
	return checkInstants(&job.CreatedAt, job.RunAt, job.ExpiresAt)
}

func checkCommand(c jobevent.Command) error {
	if jobevent.CleanText(c.Command, nameMost) == jobevent.CommandReschedule && c.RunAt == nil {
		return fmt.Errorf("reschedule job %s to no instant: %w", c.JobID, jobevent.ErrInvalid)
	}
	if err := checkInstants(c.RunAt); err != nil {
		return fmt.Errorf("take command about job %s: %w", c.JobID, err)
	}
	if c.Change == nil {
		return nil
	}
	if !namesTopic(c.Change.Queue) {
		return fmt.Errorf("change job %s to a queue that cannot be: %w", c.JobID, jobevent.ErrInvalid)
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

// cleanOutcomes removes characters that the database refuses: an outcome must not be lost for an odd character.
func cleanOutcomes(reported []Outcome) ([]Outcome, error) {
	outcomes := make([]Outcome, len(reported))
	for i, o := range reported {
		if err := checkInstants(o.StartedAt, o.FinishedAt); err != nil {
			return nil, fmt.Errorf("take outcome of job %s: %w", o.JobID, err)
		}
		o.WorkerID, o.ErrorCode = jobevent.CleanText(o.WorkerID, nameMost), jobevent.CleanText(o.ErrorCode, nameMost)
		o.Message = jobevent.CleanMessage(o.Message)
		outcomes[i] = o
	}
	return outcomes, nil
}

func checkBeat(beat jobevent.Heartbeat) error {
	if id := beat.WorkerID; id == "" || id != jobevent.CleanText(id, nameMost) {
		return fmt.Errorf("take beat of worker %q: %w", jobevent.CleanText(id, nameMost), jobevent.ErrInvalid)
	}
	for _, attempt := range beat.Attempts {
		if err := checkInstants(attempt.StartedAt); err != nil {
			return fmt.Errorf("take beat of worker %s: %w", beat.WorkerID, err)
		}
	}
	return nil
}

// checkInstants refuses instants that could be stored but, with some delay added, not be written as JSON any more: its
// years have four digits.
func checkInstants(instants ...*time.Time) error {
	for _, at := range instants {
		if at != nil && !at.IsZero() && (at.Year() < 1970 || at.Year() > 9000) {
			return fmt.Errorf("take instant of the year %d: %w", at.Year(), jobevent.ErrInvalid)
		}
	}
	return nil
}

// int16Of and int32Of make a number fit its column. A number that does not fit becomes the greatest or smallest that
// does: a CHECK refuses it, or no row has it.
func int16Of(n int) int16 { return int16(min(max(n, math.MinInt16), math.MaxInt16)) }

func int32Of[T int | int64](n T) int32 {
	return int32(min(max(int64(n), math.MinInt32), math.MaxInt32))
}
