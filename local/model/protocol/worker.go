package protocol

// kill ends a worker; another starts in its place.
func (s *state) kill(w uint8) {
	if w == noWorker {
		return
	}
	s.workers[w-1] = worker{}
	for i := range s.rows {
		if s.rows[i].owner == w {
			s.rows[i].owner = gone
		}
	}
}

// silent reports whether a worker is silent to the others.
func (s *state) silent(owner uint8) bool {
	return owner == gone || s.workers[owner-1].life != up
}

// settle writes an attempt's outcome, unless it has one, and returns the event with the outcome that it has.
func (s *state) settle(attempt uint8, o outcome) event {
	if s.rows[attempt].outcome == none {
		s.rows[attempt] = row{outcome: o}
	}
	return ended(attempt, s.rows[attempt].outcome)
}

func (w *worker) has(attempt uint8) bool { return (w.held|w.running)>>attempt&1 == 1 }

func (w *worker) drop(attempt uint8) {
	w.asked &^= 1 << attempt
	w.held &^= 1 << attempt
	w.running &^= 1 << attempt
}

// claim is a worker's step on run-job: the worker that takes the attempt has it.
func (m *model) claim(s state, by step, attempt uint8, cancel bool) {
	r := &s.rows[attempt]
	switch {
	case r.outcome != none:
		m.commit(by, s, ended(attempt, r.outcome))
	case cancel:
		m.cancelAttempt(s, by, attempt)
	case r.owner == noWorker || m.defect == NoClaimKey:
		r.owner = by.worker
		s.workers[by.worker-1].asked |= 1 << attempt // the commit's answer is still on its way, or lost
		m.out(by, s)
	}
}

// cancelAttempt is a worker's step on attempt-cancel. It ends an attempt of its own, and settles an unclaimed one, so
// that it can never start.
func (m *model) cancelAttempt(s state, by step, attempt uint8) {
	switch r := s.rows[attempt]; {
	case r.outcome != none:
		m.commit(by, s, ended(attempt, r.outcome))
	case r.owner == noWorker && m.defect == CancelLeavesNoRow:
		m.commit(by, s, ended(attempt, cancelled))
	case r.owner == noWorker || r.owner == by.worker || m.defect == CancelByAnyWorker && s.running(attempt):
		s.workers[by.worker-1].drop(attempt)
		e := s.settle(attempt, cancelled)
		m.commit(by, s, e)
	}
}

// start runs a handler.
func (m *model) start(s state, by step) {
	me := &s.workers[by.worker-1]
	me.drop(by.number)
	me.running |= 1 << by.number
	switch {
	case s.started>>by.number&1 == 1:
		m.broken = oneStart
	case by.act == starts && s.api.shown == shownCancelled && !s.api.retrying():
		m.broken = cancelledForGood
	case by.act == starts && s.runsAnother(by.number):
		m.broken = oneHandler
	}
	s.started |= 1 << by.number
	m.out(by, s)
}

// running reports whether a worker runs the attempt that it owns.
func (s *state) running(attempt uint8) bool {
	owner := s.rows[attempt].owner
	return owner != noWorker && owner != gone && s.workers[owner-1].running>>attempt&1 == 1
}

// runsAnother reports whether the handler of another attempt runs in a live worker. It does not count a handler that
// has timed out: that may ignore its context.
func (s *state) runsAnother(attempt uint8) bool {
	for _, w := range s.workers {
		for a := uint8(1); a < attempts; a++ {
			if w.life == up && a != attempt && w.running>>a&1 == 1 && s.rows[a].outcome != failed {
				return true
			}
		}
	}
	return false
}

// finish is the return of a handler, or of an attempt that its worker hands back.
func (m *model) finish(s state, by step) {
	attempt, o := by.number, outcome(by.choice)
	s.workers[by.worker-1].drop(attempt)
	r := &s.rows[attempt]
	if m.defect == SettleUnguarded {
		*r = row{owner: by.worker}
	}
	if r.outcome == none && r.owner != by.worker { // another worker has the attempt: refused
		m.out(by, s)
		return
	}
	if killed := s; m.defect == PublishBeforeCommit && spend(&killed.left.Kills) {
		killed.kill(by.worker)
		m.publish(&killed, ended(attempt, o))
		m.out(by.killedAfter(1), killed)
	}
	e := s.settle(attempt, o)
	m.commit(by, s, e)
}

// answered is a worker's step on the answer to its claim: it has the attempt.
func (m *model) answered(s state, by step) {
	me := &s.workers[by.worker-1]
	me.asked &^= 1 << by.number
	me.held |= 1 << by.number
	m.out(by, s)
}

// heartbeat is the first half of a worker's heartbeat: the worker reads its rows again, drops attempts that others have
// settled, and holds those that it has claimed without an answer, which it then ignores.
func (m *model) heartbeat(s state, w uint8) {
	me := &s.workers[w-1]
	me.life = up
	for a := uint8(1); a < attempts; a++ {
		bit := uint8(1) << a
		switch r := s.rows[a]; {
		case r.outcome != none:
			late := me.asked & bit
			me.drop(a)
			if m.defect == LateAnswerCounts {
				me.asked |= late
			}
		case me.asked&bit != 0 && m.defect == NoReread:
		case r.owner == w && me.running&bit == 0:
			me.held |= bit
			me.asked &^= bit
		}
	}
	m.out(step{act: sendsHeartbeat, worker: w}, s)
}

// reap is the other half: the attempts of silent workers are lost, and those past their timeout failed.
func (m *model) reap(s state, w uint8) {
	for a := uint8(1); a < attempts; a++ {
		r := s.rows[a]
		if r.outcome != none || r.owner == noWorker {
			continue
		}
		isLost := s.silent(r.owner) || m.defect == LiveAreReaped && r.owner != w
		if isLost && m.defect != NoReaping {
			next := s
			e := next.settle(a, lost)
			m.commit(step{act: declaresLost, number: a, worker: w}, next, e)
		}
		if s.started>>a&1 == 1 {
			next := s
			e := next.settle(a, failed)
			m.commit(step{act: timesOut, number: a, worker: w}, next, e)
		}
	}
}
