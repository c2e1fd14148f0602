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
	default:
		m.conclude(&s.job, r.number(), outcome(t-attemptEnded+1))
		m.commit(by, s, m.current(s.job)...)
	}
}

// ingest inserts the job; of one that it has it says all again.
func (m *model) ingest(s state, by step) {
	if s.job.status != 0 {
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
	m.ask(s)
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
	if a.kept || a.shown == shownCompleted || !spend(&s.left.Commands) {
		return
	}
	a.taken++
	a.kept = true
	by := step{act: cancels, number: a.taken}
	if a.shown != shownOpen {
		a.retries |= 1 << a.taken
		by.act = retries
	}
	m.commit(by, s, event{jobCommand, a.taken})
}

// project is projection's step on a job-status.
func (m *model) project(s state, i int) {
	st := s.kafka.statuses[i]
	if st.version == 0 || st.version <= s.api.version && m.defect != AnyVersion {
		return
	}
	s.api.version, s.api.shown = st.version, st.shown
	s.api.kept = s.api.kept && st.command < s.api.taken
	m.out(step{act: projects, choice: uint8(st.shown), number: st.command}, s)
}

// reconcile says again what the API waits for. A report and its answer are one step: however late the
// answer is, it says nothing that is not said anyway.
func (m *model) reconcile(s state) {
	var say []event
	if s.api.accepted && s.api.version == 0 {
		say = append(say, event{jobCreated, 0})
	}
	if s.api.kept && m.defect != CommandOnlyInKafka {
		say = append(say, event{jobCommand, s.api.taken})
	}
	if s.api.version > 0 && s.api.shown == shownOpen && s.job.version > s.api.version {
		say = append(say, m.current(s.job)...)
	}
	if len(say) > 0 && m.defect != NoReconcile {
		m.commit(step{act: reconciles}, s, say...)
	}
}
