package protocol

import "github.com/jobweaver/jobweaver/shared/jobstate"

// hear is a step on a record: of the worker, where a worker hears it, else of the record's function.
func (m *model) hear(s state, r record, worker uint8) {
	by := step{act: hears, number: uint8(r), worker: worker}
	switch t := r.topic(); {
	case t == jobCreated:
		m.ingest(s, by)
	case t == runJob || t == runJobCancel:
		m.claim(s, by, r.number(), t == runJobCancel)
	case t == attemptCancel:
		m.cancelAttempt(s, by, r.number())
	case s.job.status == 0: // a command for a job that is not known yet changes nothing
	case t == jobCommand:
		m.command(s, by, r.number())
	case t >= calledBack:
		m.callBack(&s.job, r.number(), outcome(t-calledBack+1))
		m.commit(by, s, m.current(s.job)...)
	default:
		was := s.job
		m.conclude(&s.job, r.number(), outcome(t-attemptEnded+1))
		say := m.current(s.job)
		if m.defect == OldOutcomeAsksAgain && was == s.job {
			say = append(say, event{runJob, r.number()})
		}
		m.commit(by, s, say...)
	}
}

// ingest inserts the job; of one that it has it says all again.
func (m *model) ingest(s state, by step) {
	if s.job.status != 0 && (!s.job.deleted || m.defect != DeletedIsForgotten) {
		m.commit(by, s, m.current(s.job)...)
		return
	}
	for i, as := range []jobstate.Status{jobstate.Queued, jobstate.Pending, jobstate.Failed} {
		s.job.insert(as)
		say := m.current(s.job)
		if as == jobstate.Queued {
			say = say[:1] // only run-job
		}
		m.commit(by.choosing(i), s, say...)
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
	say := m.current(s.job)
	if m.defect == AnswerWithoutDeadLetter {
		say = say[len(say)-1:]
	}
	m.commit(by, s, say...)
}

// clocks are the scheduler's steps without a record, each whenever it can be.
func (m *model) clocks(s state) {
	if next := s; m.dispatch(&next.job) {
		m.commit(step{act: dispatches}, next, m.current(next.job)...)
	}
	if next := s; s.started>>s.job.attempt&1 == 1 && m.run(&next.job) { // however late the beat is
		m.commit(step{act: hearsBeat}, next, m.current(next.job)...)
	}
	if next := s; spend(&next.left.Deletes) && m.mayRetire(s) && m.retire(&next.job) {
		m.commit(step{act: retires}, next, m.current(next.job)...)
	}
	m.ask(s)
	m.deadline(s)
}

// mayRetire reports whether a job has ended long enough ago: its dead letter was published by then.
func (m *model) mayRetire(s state) bool {
	return s.job.name() != jobstate.Failed || s.dead>>s.job.attempt&1 == 1
}

// deadline is the scheduler's question about an attempt that waits past its deadline, and the API's answer under the
// lock under which it takes callbacks: the callback that it has, or that none came.
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

// ask is watchdog's question about an attempt whose lease has run out, and its cancel said again.
func (m *model) ask(s state) {
	if !s.job.name().InFlight() || m.defect == NoQuestion {
		return
	}
	say := m.current(s.job)
	say = say[:len(say)-1] // not the job-status
	if m.defect == SchedulerJudges {
		m.conclude(&s.job, s.job.attempt, lost)
		say = m.current(s.job)
	}
	m.commit(step{act: asks}, s, say...)
}

// client submits the job, and asks for commands while none is unconfirmed.
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

// keep keeps the next command, and publishes it.
func (m *model) keep(s state, what act) {
	s.api.taken++
	s.api.kept = true
	m.commit(step{act: what, number: s.api.taken}, s, event{jobCommand, s.api.taken})
}

// callbackInTheWay reports whether a callback that was taken has not come to anything yet.
func (a api) callbackInTheWay() bool {
	for n := uint8(1); n <= a.attempt; n++ {
		if a.called(n) && !a.over(n) {
			return true
		}
	}
	return false
}

// outside is the outside system's callback: as early as the attempt's start, as late as it likes.
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

// project is projection's step on a job-status. A tombstone carries the job's end: the API takes that before it deletes
// its row, or nobody would ever learn of the end.
func (m *model) project(s state, i int) {
	st := s.kafka.statuses[i]
	if st.version == 0 || s.api.gone || st.version <= s.api.version && m.defect != AnyVersion {
		return
	}
	if st.deleted && m.defect == TombstoneWithoutEnd && s.api.shown != st.shown {
		m.broken = endsAreHeard
	}
	s.api.version, s.api.shown, s.api.attempt = st.version, st.shown, st.attempt
	s.api.kept = s.api.kept && st.command < s.api.taken && !st.deleted
	s.api.gone = st.deleted
	m.out(step{act: projects, choice: uint8(st.shown), number: st.command}, s)
}

// reconcile publishes again what the API waits for. A report and its answer are one step: however late the
// answer is, it says nothing that is not said anyway.
func (m *model) reconcile(s state) {
	var say []event
	if s.api.gone {
		return
	}
	if s.api.accepted && s.api.version == 0 {
		say = append(say, event{jobCreated, 0})
	}
	if s.api.kept && m.defect != CommandOnlyInKafka {
		say = append(say, event{jobCommand, s.api.taken})
	}
	for n := uint8(1); n < attempts && m.defect != CallbackOnlyInKafka; n++ {
		if !s.api.called(n) || s.api.over(n) {
			continue
		}
		o := failed
		if s.api.completed>>n&1 == 1 {
			o = completed
		}
		say = append(say, callback(n, o))
	}
	if s.api.version > 0 && !s.api.shown.ended() && s.job.version > s.api.version {
		say = append(say, m.current(s.job)...)
	}
	if len(say) > 0 && m.defect != NoReconcile {
		m.commit(step{act: reconciles}, s, say...)
	}
}
