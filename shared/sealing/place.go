package sealing

import (
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// Field is a sealed field of a job, an attempt, a schedule or an alert.
type Field string

// The fields.
const (
	Payload    Field = "payload"    // of a job
	Checkpoint Field = "checkpoint" // of a job
	Message    Field = "message"    // of a job's failure: it outlives its attempt as lastError
	Output     Field = "output"     // of an attempt
	LogLine    Field = "log"        // of an attempt
	Progress   Field = "progress"   // of an attempt
	Wait       Field = "wait"       // of a job: what its handler waits for
	Job        Field = "job"        // of a schedule: the request that each tick repeats
	To         Field = "to"         // of an alert: where its notices go
)

// Place is where a value is stored. A value that was sealed for one place does not open at another.
type Place struct {
	job     uuid.UUID
	attempt int    // 0: a field of the job
	named   string // of a schedule or an alert: which of both, its name and its owner; empty: not a field of one
	field   Field
}

// OfJob is a place in a job.
func OfJob(id uuid.UUID, field Field) Place { return Place{job: id, field: field} }

// OfStep is the place of what a step of a job returned.
func OfStep(id uuid.UUID, name string) Place { return Place{job: id, field: Field("step/" + name)} }

// OfAttempt is a place in an attempt.
func OfAttempt(id uuid.UUID, attempt int, field Field) Place {
	return Place{job: id, attempt: attempt, field: field}
}

// OfSchedule is the place of a schedule's job. A name has no colon, and an owner has one schedule of a name.
func OfSchedule(name, owner string) Place {
	return Place{named: "schedule:" + name + ":" + owner, field: Job}
}

// OfAlert is the place of an alert's destination.
func OfAlert(name, owner string) Place { return Place{named: "alert:" + name + ":" + owner, field: To} }

// name returns the text that is authenticated with the value.
func (p Place) name() []byte {
	var of string
	switch {
	case p.named != "":
		of = p.named
	case p.attempt > 0:
		of = jobevent.AttemptToken(p.job, p.attempt)
	default:
		of = p.job.String()
	}
	return append(append([]byte(of), '/'), p.field...)
}
