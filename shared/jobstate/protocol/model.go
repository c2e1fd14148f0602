package protocol

import "github.com/jobweaver/jobweaver/shared/jobstate"

// Limits bound a walk.
type Limits struct {
	Retries, Lost uint8 // maxRetryCount and MAX_LOST
	Budget
}

// Budget bounds what is done to the job. Any is no bound.
type Budget struct {
	Commands uint8 // cancels and retries that the client asks for
	Kills    uint8 // of a worker
	Freezes  uint8 // of a worker
	Stops    uint8 // attempts that a worker hands back
	Losses   uint8 // kills of whoever is about to say what it has committed, and wipes of Kafka
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
}

type topic uint8

const (
	jobCreated topic = iota
	runJob
	runJobCancel // run-job with cancel: true
	attemptCancel
	jobCommand
	attemptEnded                              // job-completed and job-failed: one for each outcome, this and the next four
	deadLetter   = attemptEnded + topic(ends) // heard by nobody of ours
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
	ends = cancelled
)

var kinds = [...]jobstate.Kind{
	completed: jobstate.KindCompleted, failed: jobstate.KindFailed, lost: jobstate.KindLost,
	interrupted: jobstate.KindInterrupted, cancelled: jobstate.KindCancelled,
}

// event is something to say.
type event struct {
	topic  topic
	number uint8
}

func ended(attempt uint8, o outcome) event { return event{attemptEnded + topic(o) - 1, attempt} }

// commit ends a step: its transaction is done, now its events are said in order. Whoever says them may
// be killed before each.
func (m *model) commit(by step, s state, say ...event) {
	for i, e := range say {
		if killed := s; e.topic == deadLetter || spend(&killed.left.Losses) {
			killed.kill(by.worker)
			m.out(by.killedAfter(i), killed)
		}
		m.say(&s, e)
	}
	m.out(by, s)
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
	said := snapshot{version: s.job.version, command: s.job.command, shown: s.job.shown()}
	if said.shown == shownFailed && s.dead>>s.job.attempt&1 == 0 {
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
