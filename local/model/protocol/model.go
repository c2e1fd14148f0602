package protocol

import "github.com/jobweaver/jobweaver/shared/jobstate"

// Limits bound a walk.
type Limits struct {
	Retries, Lost uint8 // maxRetryCount and MAX_LOST
	Budget
}

// Budget bounds what is done to the job. Any is no bound.
type Budget struct {
	Commands  uint8 // cancels and retries that the client asks for
	Kills     uint8 // of a worker
	Freezes   uint8 // of a worker
	Stops     uint8 // attempts that a worker hands back
	Losses    uint8 // kills of whoever is about to say what it has committed, and wipes of Kafka
	Waits     uint8 // attempts that begin to wait for a callback
	Callbacks uint8 // that the outside system makes
	Deletes   uint8 // that the client asks for, and retentions
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

// model takes steps: each hands every state that it can lead to to out.
type model struct {
	limits Limits
	defect Defect
	out    func(step, state)
	broken promise // by the step that is being taken
	said   []event // in that step
}

type topic uint8

const (
	jobCreated topic = iota
	runJob
	runJobCancel // run-job with cancel: true
	attemptCancel
	jobCommand
	attemptEnded                              // of a worker: one for each outcome, this and the next five
	calledBack   = attemptEnded + topic(ends) // job-completed and job-failed of the API, this and the next
	deadLetter   = calledBack + 2             // consumed by no function
	jobStatus    = deadLetter + 1             // in kafka.statuses
)

// outcome is what became of an attempt.
type outcome uint8

const (
	none outcome = iota
	completed
	failed
	lost
	interrupted
	cancelled
	waiting // for a callback: the API decides then
	ends    = waiting
)

var kinds = [...]jobstate.Kind{
	completed: jobstate.KindCompleted, failed: jobstate.KindFailed, lost: jobstate.KindLost,
	interrupted: jobstate.KindInterrupted, cancelled: jobstate.KindCancelled, waiting: jobstate.KindWaiting,
}

// event is something to say.
type event struct {
	topic  topic
	number uint8
}

func ended(attempt uint8, o outcome) event    { return event{attemptEnded + topic(o) - 1, attempt} }
func callback(attempt uint8, o outcome) event { return event{calledBack + topic(o) - 1, attempt} }

// commit ends a step: its transaction is done, now its events are published. The process may be killed when any subset
// of them is published, but a job-status is published only after all others were acknowledged.
func (m *model) commit(by step, s state, say ...event) {
	m.said = say
	for mask := range 1<<len(say) - 1 {
		if !m.mayEndAfter(mask, say) {
			continue
		}
		killed := s
		if !lacksDeadLetter(mask, say) && !spend(&killed.left.Losses) {
			continue
		}
		killed.kill(by.worker)
		for i, e := range say {
			if mask>>i&1 == 1 {
				m.say(&killed, e)
			}
		}
		m.out(by.killedAfter(mask), killed)
	}
	for _, e := range say {
		m.say(&s, e)
	}
	m.out(by, s)
}

// mayEndAfter reports whether exactly the events of mask can be the published ones.
func (m *model) mayEndAfter(mask int, say []event) bool {
	last := len(say) - 1
	return say[last].topic != jobStatus || mask>>last == 0 || m.defect == StatusNotHeldBack
}

// lacksDeadLetter reports whether a dead letter is among the unpublished events. That costs no budget: it matters for
// each dead letter whether it was published, but nothing consumes it.
func lacksDeadLetter(mask int, say []event) bool {
	for i, e := range say {
		if e.topic == deadLetter && mask>>i&1 == 0 {
			return true
		}
	}
	return false
}

func (m *model) say(s *state, e event) {
	if e.topic == deadLetter {
		s.dead |= 1 << e.number
	} else if e.topic == jobStatus {
		m.sayStatus(s)
	} else {
		s.kafka.add(e.topic.record(e.number))
	}
}

func (m *model) sayStatus(s *state) {
	said := snapshot{version: s.job.version, command: s.job.command, shown: s.job.shown(), deleted: s.job.deleted}
	if m.limits.Waits > 0 {
		said.attempt = s.job.attempt
	} else if !said.shown.ended() {
		said.shown = shownOpen
	}
	if said.shown == shownFailed && !said.deleted && s.dead>>s.job.attempt&1 == 0 {
		m.broken = deadLetterFirst
	}
	for i, old := range s.kafka.statuses {
		switch old.version {
		case said.version:
			if old != said {
				m.broken = oneContent
			}
			return
		case 0:
			s.kafka.statuses[i] = said
			return
		}
	}
	panic("a state has no room for another job-status")
}

// current is all that follows from the scheduler's row as it is.
func (m *model) current(j job) []event {
	status, dead := event{jobStatus, 0}, event{deadLetter, j.attempt}
	switch {
	case j.deleted:
		return []event{status} // the tombstone
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
