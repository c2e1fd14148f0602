package protocol

import "github.com/jobweaver/jobweaver/shared/jobstate"

// consume is the step of a worker on a record, or of the function that consumes the record's topic.
func (m *model) consume(s state, r record, worker uint8) {
	by := step{act: consumes, number: uint8(r), worker: worker}
	switch t := r.topic(); {
	case t == jobCreated:
		m.ingest(s, by)
	case t == runJob || t == runJobCancel:
		m.claim(s, by, r.number(), t == runJobCancel)
	case t == attemptCancel:
		m.cancelAttempt(s, by, r.number())
	case s.job.status == 0: // a command for an unknown job changes nothing
	case t == jobCommand:
		m.command(s, by, r.number())
	case t >= calledBack:
		m.callBack(&s.job, r.number(), outcome(t-calledBack+1))
		m.commit(by, s, m.current(s.job)...)
	default:
		was := s.job
		m.conclude(&s.job, r.number(), outcome(t-attemptEnded+1))
		events := m.current(s.job)
		if m.defect == OldOutcomeAsksAgain && was == s.job {
			events = append(events, event{runJob, r.number()})
		}
		m.commit(by, s, events...)
	}
}

// ingest inserts the job. If it has the job already, it publishes the current state again.
func (m *model) ingest(s state, by step) {
	if s.job.status != 0 && (!s.job.deleted || m.defect != DeletedIsForgotten) {
		m.commit(by, s, m.current(s.job)...)
		return
	}
	for i, as := range []jobstate.Status{jobstate.Queued, jobstate.Pending, jobstate.Failed} {
		s.job.insert(as)
		events := m.current(s.job)
		if as == jobstate.Queued {
			events = events[:1] // run-job only
		}
		m.commit(by.choosing(i), s, events...)
	}
}

func (m *model) command(s state, by step, number uint8) {
	c := jobstate.Cancel
	if s.api.retries>>number&1 == 1 {
		c = jobstate.Retry
	} else if s.api.deletes>>number&1 == 1 {
		c = jobstate.Delete
	}
	m.obey(&s.job, number, c)
	events := m.current(s.job)
	if m.defect == AnswerWithoutDeadLetter {
		events = events[len(events)-1:]
	}
	m.commit(by, s, events...)
}

// clocks takes the scheduler's steps without a record, each whenever it is possible.
func (m *model) clocks(s state) {
	if next := s; m.dispatch(&next.job) {
		m.commit(step{act: dispatches}, next, m.current(next.job)...)
	}
	if next := s; s.started>>s.job.attempt&1 == 1 && m.run(&next.job) { // however late the heartbeat is
		m.commit(step{act: receivesHeartbeat}, next, m.current(next.job)...)
	}
	if next := s; spend(&next.left.Deletes) && m.mayRetire(s) && m.retire(&next.job) {
		m.commit(step{act: retires}, next, m.current(next.job)...)
	}
	m.ask(s)
	m.deadline(s)
}

// mayRetire reports whether a job may have ended long ago: its dead letter was published by then.
func (m *model) mayRetire(s state) bool {
	return s.job.name() != jobstate.Failed || s.dead>>s.job.attempt&1 == 1
}

// deadline is the scheduler's question about an attempt that waits past its deadline, and the API's answer: the
// callback that it has, or that none came. The API answers under the lock under which it accepts callbacks.
func (m *model) deadline(s state) {
	a := s.job.attempt
	if s.job.name() != jobstate.Waiting || m.defect == NoDeadline {
		return
	}
	by := step{act: asksForCallback, number: a}
	if m.defect == SchedulerGivesUp {
		m.conclude(&s.job, a, failed)
		m.commit(by, s, m.current(s.job)...)
		return
	}
	if s.api.gone || s.api.shown != shownWaiting || s.api.attempt != a {
		return
	}
	o := failed
	switch {
	case m.defect == CallbackOnlyInKafka:
		s.api.failed |= 1 << a
	case s.api.completed>>a&1 == 1:
		o = completed
	default:
		s.api.failed |= 1 << a
	}
	m.commit(by.choosing(int(o)), s, callback(a, o))
}

// ask is watchdog's question about an attempt whose lease has run out, with a pending cancel.
func (m *model) ask(s state) {
	if !s.job.name().InFlight() || m.defect == NoQuestion {
		return
	}
	events := m.current(s.job)
	events = events[:len(events)-1] // not the job-status
	if m.defect == SchedulerReaps {
		m.conclude(&s.job, s.job.attempt, lost)
		events = m.current(s.job)
	}
	m.commit(step{act: asks}, s, events...)
}

// client submits the job, and sends a command if none is unconfirmed.
func (m *model) client(s state) {
	a := &s.api
	if !a.accepted {
		a.accepted = true
		m.commit(step{act: submits}, s, event{jobCreated, 0})
		return
	}
	if a.kept || a.gone || a.callbackInTheWay() {
		return
	}
	if next := s; a.shown.ended() && spend(&next.left.Deletes) {
		next.api.deletes |= 1 << (a.taken + 1)
		m.keep(next, deletes)
	}
	if next := s; a.shown != shownCompleted && spend(&next.left.Commands) {
		if a.shown.ended() {
			next.api.retries |= 1 << (a.taken + 1)
			m.keep(next, retries)
		} else {
			m.keep(next, cancels)
		}
	}
}

// keep stores the next command, and publishes it.
func (m *model) keep(s state, what act) {
	s.api.taken++
	s.api.kept = true
	m.commit(step{act: what, number: s.api.taken}, s, event{jobCommand, s.api.taken})
}

// callbackInTheWay reports whether an accepted callback is not confirmed yet.
func (a api) callbackInTheWay() bool {
	for n := uint8(1); n <= a.attempt; n++ {
		if a.called(n) && !a.over(n) {
			return true
		}
	}
	return false
}

// outside is the outside system's callback, at any time after the attempt's start.
func (m *model) outside(s state) {
	a := s.api
	if a.gone || a.cancelling() || a.shown.ended() && !a.retrying() || !spend(&s.left.Callbacks) {
		return
	}
	for n := uint8(1); n < attempts; n++ {
		if s.started>>n&1 == 0 || a.called(n) || a.over(n) {
			continue
		}
		by, next := step{act: callsBack, number: n}, s
		next.api.completed |= 1 << n
		m.commit(by.choosing(int(completed)), next, callback(n, completed))
		next = s
		next.api.failed |= 1 << n
		m.commit(by.choosing(int(failed)), next, callback(n, failed))
	}
}

// project is projection's step on a job-status. The status of a deletion has the job's end: the API stores that before
// it deletes its row, because no other event may have it.
func (m *model) project(s state, i int) {
	st := s.kafka.statuses[i]
	if st.version == 0 || s.api.gone || st.version <= s.api.version && m.defect != AnyVersion {
		return
	}
	if st.deleted && m.defect == TombstoneWithoutEnd && s.api.shown != st.shown {
		m.broken = endsAreShown
	}
	s.api.version, s.api.shown, s.api.attempt = st.version, st.shown, st.attempt
	s.api.kept = s.api.kept && st.command < s.api.taken && !st.deleted
	s.api.gone = st.deleted
	m.out(step{act: projects, choice: uint8(st.shown), number: st.command}, s)
}

// reconcile republishes what the scheduler has not confirmed. A report and its answer are one step: however late the
// answer is, it has only events that other steps publish too.
func (m *model) reconcile(s state) {
	var events []event
	if s.api.gone {
		return
	}
	if s.api.accepted && s.api.version == 0 {
		events = append(events, event{jobCreated, 0})
	}
	if s.api.kept && m.defect != CommandOnlyInKafka {
		events = append(events, event{jobCommand, s.api.taken})
	}
	for n := uint8(1); n < attempts && m.defect != CallbackOnlyInKafka; n++ {
		if !s.api.called(n) || s.api.over(n) {
			continue
		}
		o := failed
		if s.api.completed>>n&1 == 1 {
			o = completed
		}
		events = append(events, callback(n, o))
	}
	if s.api.version > 0 && !s.api.shown.ended() && s.job.version > s.api.version {
		events = append(events, m.current(s.job)...)
	}
	if len(events) > 0 && m.defect != NoReconcile {
		m.commit(step{act: reconciles}, s, events...)
	}
}
