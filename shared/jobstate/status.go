// Package jobstate has the states of a job and its transitions: how outcomes and commands change a job. It needs
// no database, so the model can check it.
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
	Running   Status = "RUNNING"   // a heartbeat has listed the attempt as running
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

// Unknown returns the error text for a text that is no state: a sentence without its subject.
func Unknown(text string) string {
	names := make([]string, len(All()))
	for i, s := range All() {
		names[i] = string(s)
	}
	return fmt.Sprintf("must be one of %s, not %.40q", strings.Join(names, ", "), text)
}

// Terminal reports whether a job in this state has ended.
func (s Status) Terminal() bool {
	switch s {
	case Completed, Failed, Cancelled:
		return true
	case Scheduled, Pending, Queued, Running, Waiting, Retrying:
		return false
	}
	return false
}

// InFlight reports whether an attempt of the job is dispatched and has no outcome.
func (s Status) InFlight() bool { return s == Queued || s == Running }

// Valid reports whether s is one of the states.
func (s Status) Valid() bool {
	switch s {
	case Scheduled, Pending, Queued, Running, Waiting, Retrying, Completed, Failed, Cancelled:
		return true
	}
	return false
}
