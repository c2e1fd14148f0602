package protocol

import "github.com/jobweaver/jobweaver/shared/jobstate"

// Limits bound a walk.
type Limits struct {
	Retries, Lost uint8 // maxRetryCount and MAX_LOST
	Budget
}

// Budget bounds the events that happen to the job. Any is no bound.
type Budget struct {
	Commands  uint8 // cancels and retries by the client
	Kills     uint8 // of a worker
	Freezes   uint8 // of a worker
	Stops     uint8 // attempts that workers hand back
	Losses    uint8 // kills of a process between commit and publish, and wipes of Kafka
	Waits     uint8 // attempts that begin to wait for a callback
	Callbacks uint8 // by the outside system
	Deletes   uint8 // by the client or by retention
}

// Any is no bound.
const Any = 255

func spend(left *uint8) bool {
	if *left == 0 {
		return false
	}
	if *left != Any {
		*left--
	}
	return true
}

// model takes steps: each calls out with every state to which it can lead.
type model struct {
	limits    Limits
	defect    Defect
	out       func(step, state)
	broken    promise // by the current step
	published []event // in that step
}

type topic uint8

const (
	jobCreated topic = iota
	runJob
	runJobCancel // run-job with cancel: true
	attemptCancel
	jobCommand
	attemptEnded                              // of a worker: this and the next five, one for each outcome
	calledBack   = attemptEnded + topic(ends) // of the API: this and the next, attempt-ended
	deadLetter   = calledBack + 2             // consumed by no function
	jobStatus    = deadLetter + 1             // in kafka.statuses
)

// outcome is the outcome of an attempt.
type outcome uint8

const (
	none outcome = iota
	completed
	failed
	lost
	interrupted
	cancelled
	waiting // for a callback: then the API decides
	ends    = waiting
)

var kinds = [...]jobstate.Kind{
	completed: jobstate.KindCompleted, failed: jobstate.KindFailed, lost: jobstate.KindLost,
	interrupted: jobstate.KindInterrupted, cancelled: jobstate.KindCancelled, waiting: jobstate.KindWaiting,
}

// event is an event to publish.
type event struct {
	topic  topic
	number uint8
}

func ended(attempt uint8, o outcome) event    { return event{attemptEnded + topic(o) - 1, attempt} }
func callback(attempt uint8, o outcome) event { return event{calledBack + topic(o) - 1, attempt} }

// commit ends a step: its transaction has committed, and its events are published. The process may be killed when any
// subset of them is published, but a job-status is published only after all others were acknowledged.
func (m *model) commit(by step, s state, events ...event) {
	m.published = events
	for mask := range 1<<len(events) - 1 {
		if !m.mayEndAfter(mask, events) {
			continue
		}
		killed := s
		if !lacksDeadLetter(mask, events) && !spend(&killed.left.Losses) {
			continue
		}
		killed.kill(by.worker)
		for i, e := range events {
			if mask>>i&1 == 1 {
				m.publish(&killed, e)
			}
		}
		m.out(by.killedAfter(mask), killed)
	}
	for _, e := range events {
		m.publish(&s, e)
	}
	m.out(by, s)
}

// mayEndAfter reports whether a kill can leave exactly the events of mask published.
func (m *model) mayEndAfter(mask int, events []event) bool {
	last := len(events) - 1
	return events[last].topic != jobStatus || mask>>last == 0 || m.defect == StatusNotHeldBack
}

// lacksDeadLetter reports whether a dead letter is among the unpublished events. Such a kill costs no budget: it
// matters whether a dead letter was published, but no function consumes it.
func lacksDeadLetter(mask int, events []event) bool {
	for i, e := range events {
		if e.topic == deadLetter && mask>>i&1 == 0 {
			return true
		}
	}
	return false
}

func (m *model) publish(s *state, e event) {
	if e.topic == deadLetter {
		s.dead |= 1 << e.number
	} else if e.topic == jobStatus {
		m.publishStatus(s)
	} else {
		s.kafka.add(e.topic.record(e.number))
	}
}

func (m *model) publishStatus(s *state) {
	status := snapshot{version: s.job.version, command: s.job.command, shown: s.job.shown(), deleted: s.job.deleted}
	if m.limits.Waits > 0 {
		status.attempt = s.job.attempt
	} else if !status.shown.ended() {
		status.shown = shownOpen
	}
	if status.shown == shownFailed && !status.deleted && s.dead>>s.job.attempt&1 == 0 {
		m.broken = deadLetterFirst
	}
	for i, old := range s.kafka.statuses {
		switch old.version {
		case status.version:
			if old != status {
				m.broken = oneContent
			}
			return
		case 0:
			s.kafka.statuses[i] = status
			return
		}
	}
	panic("a state has no room for another job-status")
}

// current returns the events that follow from the scheduler's row.
func (m *model) current(j job) []event {
	status, dead := event{jobStatus, 0}, event{deadLetter, j.attempt}
	switch {
	case j.deleted:
		return []event{status} // the deletion
	case j.name().InFlight() && j.cancel:
		return []event{{runJobCancel, j.attempt}, {attemptCancel, j.attempt}, status}
	case j.name().InFlight():
		return []event{{runJob, j.attempt}, status}
	case j.name() == jobstate.Failed && m.defect == StatusBeforeDeadLetter:
		return []event{status, dead}
	case j.name() == jobstate.Failed:
		return []event{dead, status}
	}
	return []event{status}
}
