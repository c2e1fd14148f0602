package jobevent

import (
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// JobID makes the id of a job from a new UUID. The last bit of the id decides whether the job's trace is kept: every
// function can read it there, even hours later, and none has to store it.
func JobID(id uuid.UUID, sampled bool) uuid.UUID {
	id[15] &^= 1
	if sampled {
		id[15] |= 1
	}
	return id
}

// blockBits are the bits of an id's last byte by which the ids of a block differ.
const blockBits = 0x7e

// BlockSize is how many ids a block has.
const BlockSize = 64

// InBlock returns the id of the job at a place, from 0 to BlockSize-1, of the block of an id. So jobs that were
// accepted together are found together, by a range of their ids.
func InBlock(id uuid.UUID, place int) uuid.UUID {
	id[15] = id[15]&^blockBits | byte(place)<<1&blockBits
	return id
}

// PlaceInBlock returns the place of an id in its block, from 0 to BlockSize-1. Ids of a block are in the order of it.
func PlaceInBlock(id uuid.UUID) int { return int(id[15]&blockBits) >> 1 }

// SameBlock reports whether two ids are of the same block.
func SameBlock(a, b uuid.UUID) bool { return InBlock(a, 0) == InBlock(b, 0) }

// Sampled reports whether the trace of a job is kept.
func Sampled(jobID uuid.UUID) bool { return jobID[15]&1 == 1 }

// CreatedID names the event that a job was accepted.
func CreatedID(jobID uuid.UUID) string { return jobID.String() + ".created" }

// RunID returns the id of an attempt's run order.
func RunID(jobID uuid.UUID, attempt int) string { return attemptID(jobID, attempt, ".run") }

// OutcomeID returns the id of an attempt's outcome: kind is completed, failed, lost, interrupted …
func OutcomeID(jobID uuid.UUID, attempt int, kind string) string {
	return attemptID(jobID, attempt, "."+kind)
}

// named is data from which the id of its item follows.
type named interface{ usualID() string }

func (c *Created) usualID() string { return CreatedID(c.JobID) }

func (r *Run) usualID() string { return RunID(r.JobID, r.Attempt) }

func (c *Completed) usualID() string {
	return OutcomeID(c.JobID, c.Attempt, string(jobstate.KindCompleted))
}

func (f *Failed) usualID() string { return OutcomeID(f.JobID, f.Attempt, string(f.Kind)) }

func (w *Waiting) usualID() string {
	return OutcomeID(w.JobID, w.Attempt, string(jobstate.KindWaiting))
}

// DeadLetterID names the one dead letter of a job whose attempt was its last.
func DeadLetterID(jobID uuid.UUID, attempt int) string { return attemptID(jobID, attempt, ".dead") }

// AttemptCancelID names the request to end an attempt.
func AttemptCancelID(jobID uuid.UUID, attempt int) string {
	return attemptID(jobID, attempt, ".cancel")
}

// DrainID names the order to a worker to drain, or to take attempts again, by a version of its control.
func DrainID(workerID string, version int64) string {
	return workerID + ".drain" + strconv.FormatInt(version, 10)
}

// FollowID names the order to a worker to serve the created queues of a revision of the controls.
func FollowID(workerID string, revision int64) string {
	return workerID + ".queues" + strconv.FormatInt(revision, 10)
}

// AttemptLogID names a run of an attempt's log lines by the number of its first line.
func AttemptLogID(jobID uuid.UUID, attempt, firstLine int) string {
	return attemptID(jobID, attempt, ".log"+strconv.Itoa(firstLine))
}

// StatusID names a version of a job.
func StatusID(jobID uuid.UUID, version int64) string {
	return jobID.String() + ".v" + strconv.FormatInt(version, 10)
}

// UnknownID names the scheduler's answer that it does not know a job of which the API has this version.
func UnknownID(jobID uuid.UUID, version int64) string { return StatusID(jobID, version) + ".unknown" }

// CommandID names a job's numbered command.
func CommandID(jobID uuid.UUID, number int) string {
	return jobID.String() + ".c" + strconv.Itoa(number)
}

// DeletedID names the deletion of a job; the version is that of the job when it was deleted.
func DeletedID(jobID uuid.UUID, version int64) string {
	return jobID.String() + ".deleted" + strconv.FormatInt(version, 10)
}

// ControlID names a version of a control. The event type shows whether the version is set or applied.
func ControlID(kind ControlKind, name string, version int64) string {
	return "control." + string(kind) + ":" + name + ".v" + strconv.FormatInt(version, 10)
}

// AttemptToken returns the token with which a handler can fence its own side effects: <jobId>.<attempt>.
func AttemptToken(jobID uuid.UUID, attempt int) string { return attemptID(jobID, attempt, "") }

// ReadAttemptToken returns the job and the attempt with which a text begins: those of an AttemptToken, and a dot.
func ReadAttemptToken(text string) (jobID uuid.UUID, attempt int, ok bool) {
	parts := strings.SplitN(text, ".", 3)
	if len(parts) != 3 {
		return uuid.Nil, 0, false
	}
	jobID, err := uuid.Parse(parts[0])
	if err != nil {
		return uuid.Nil, 0, false
	}
	attempt, err = strconv.Atoi(parts[1])
	return jobID, attempt, err == nil && attempt > 0
}

func attemptID(jobID uuid.UUID, attempt int, suffix string) string {
	b := strconv.AppendInt(append(appendUUID(make([]byte, 0, 80), jobID), '.'), int64(attempt), 10)
	return string(append(b, suffix...))
}
