// Package jobstate holds the states of a job and the moves between them: what an outcome or a
// command makes of a job, decided without a database, so that the model can check it.
package jobstate

import (
	"fmt"
	"strings"
)

// Status is a job's state.
type Status string

// The states. Waiting for a dependency, an order, a limit or a pause is Pending.
const (
	Scheduled Status = "SCHEDULED" // not due yet
	Pending   Status = "PENDING"   // due, waiting for room
	Queued    Status = "QUEUED"    // its attempt is on run-job
	Running   Status = "RUNNING"   // a worker's beat lists the attempt as started
	Waiting   Status = "WAITING"   // for an outside system's callback
	Retrying  Status = "RETRYING"  // an attempt failed, the next is not due yet
	Completed Status = "COMPLETED"
	Failed    Status = "FAILED"
	Cancelled Status = "CANCELLED"
)

// All lists every state.
func All() []Status {
	return []Status{Scheduled, Pending, Queued, Running, Waiting, Retrying, Completed, Failed, Cancelled}
}

// Unknown says of a text that is not one of the states what it must be, as a sentence without its subject.
func Unknown(text string) string {
	names := make([]string, len(All()))
	for i, s := range All() {
		names[i] = string(s)
	}
	return fmt.Sprintf("must be one of %s, not %.40q", strings.Join(names, ", "), text)
}

// Terminal says whether a job in this state has ended.
func (s Status) Terminal() bool {
	switch s {
	case Completed, Failed, Cancelled:
		return true
	case Scheduled, Pending, Queued, Running, Waiting, Retrying:
		return false
	}
	return false
}

// InFlight says whether a worker has, or is about to have, the job's attempt.
func (s Status) InFlight() bool { return s == Queued || s == Running }

// Valid says whether s is one of the states.
func (s Status) Valid() bool {
	switch s {
	case Scheduled, Pending, Queued, Running, Waiting, Retrying, Completed, Failed, Cancelled:
		return true
	}
	return false
}
