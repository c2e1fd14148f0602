package schedulerdb

import (
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// Here stands what the database cannot refuse by itself. Every error wraps jobevent.ErrInvalid.

// Bounds in bytes. Names and messages are repeated in every status of their job, up to a hundred times.
const (
	nameMost    = 255
	messageMost = 4 << 10
)

func checkCreated(job jobevent.Created) error {
	if job.JobID == uuid.Nil {
		return fmt.Errorf("take job without id: %w", jobevent.ErrInvalid)
	}
	if !namesTopic(job.Queue) {
		return fmt.Errorf("take job of queue %q: %w", cleanText(job.Queue, nameMost), jobevent.ErrInvalid)
	}
	return checkInstants(&job.CreatedAt, job.RunAt, job.ExpiresAt)
}

func checkCommand(c jobevent.Command) error {
	if cleanText(c.Command, nameMost) == jobevent.CommandReschedule && c.RunAt == nil {
		return fmt.Errorf("reschedule job %s to no instant: %w", c.JobID, jobevent.ErrInvalid)
	}
	if err := checkInstants(c.RunAt); err != nil {
		return fmt.Errorf("take command about job %s: %w", c.JobID, err)
	}
	return nil
}

// namesTopic says whether a queue has nothing in its name that a topic's name may not have. Its length is
// the database's business.
func namesTopic(queue string) bool {
	for _, c := range []byte(queue) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}

// cleanOutcomes makes what workers say fit: what became of an attempt must not be refused for an odd
// character.
func cleanOutcomes(said []Outcome) ([]Outcome, error) {
	outcomes := make([]Outcome, len(said))
	for i, o := range said {
		if err := checkInstants(o.StartedAt, o.FinishedAt); err != nil {
			return nil, fmt.Errorf("take outcome of job %s: %w", o.JobID, err)
		}
		o.WorkerID, o.ErrorCode = cleanText(o.WorkerID, nameMost), cleanText(o.ErrorCode, nameMost)
		o.Message = cleanText(o.Message, messageMost)
		outcomes[i] = o
	}
	return outcomes, nil
}

func checkBeat(beat jobevent.Heartbeat) error {
	if id := beat.WorkerID; id == "" || id != cleanText(id, nameMost) {
		return fmt.Errorf("take beat of worker %q: %w", cleanText(id, nameMost), jobevent.ErrInvalid)
	}
	for _, attempt := range beat.Attempts {
		if err := checkInstants(attempt.StartedAt); err != nil {
			return fmt.Errorf("take beat of worker %s: %w", beat.WorkerID, err)
		}
	}
	return nil
}

// checkInstants refuses what could be stored and, some delay later, not be said in JSON any more: its
// years have four digits.
func checkInstants(instants ...*time.Time) error {
	for _, at := range instants {
		if at != nil && !at.IsZero() && (at.Year() < 1970 || at.Year() > 9000) {
			return fmt.Errorf("take instant of the year %d: %w", at.Year(), jobevent.ErrInvalid)
		}
	}
	return nil
}

// cleanText makes a text of any origin one that PostgreSQL keeps, that JSON does not blow up, and that
// fits.
func cleanText(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	if len(text) <= most {
		return text
	}
	for most -= len("…"); !utf8.RuneStart(text[most]); most-- {
	}
	return text[:most] + "…"
}

// int16Of and int32Of make a number fit its column. What does not becomes the greatest or smallest that
// does: a CHECK refuses it, or no row has it.
func int16Of(n int) int16 { return int16(min(max(n, math.MinInt16), math.MaxInt16)) }

func int32Of[T int | int64](n T) int32 {
	return int32(min(max(int64(n), math.MinInt32), math.MaxInt32))
}
