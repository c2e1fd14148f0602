package protocol

// steps takes every step that s allows.
func (m *model) steps(s state) {
	m.client(s)
	m.outside(s)
	s.kafka.each(func(r record) {
		for w := noWorker; w <= workers; w++ {
			if s.mayConsume(w, r) {
				m.consume(s, r, w)
			}
		}
	})
	for i := range s.kafka.statuses {
		m.project(s, i)
	}
	m.clocks(s)
	m.reconcile(s)
	for w := uint8(1); w <= workers; w++ {
		m.work(s, w)
		m.mischief(s, w)
	}
	if spend(&s.left.Losses) {
		s.kafka = kafka{}
		m.out(step{act: wipes}, s)
	}
	if m.defect == StatusesUnflushed && s.api.version > 0 && !s.api.gone {
		s.api.version, s.api.shown, s.api.attempt = 0, shownOpen, 0
		m.out(step{act: crashes}, s)
	}
}

// mayConsume reports whether a worker, or noWorker for the other functions, can consume a record now.
func (s *state) mayConsume(w uint8, r record) bool {
	if t := r.topic(); t != runJob && t != runJobCancel && t != attemptCancel {
		return w == noWorker
	}
	return w != noWorker && s.workers[w-1].life != frozen
}

// work takes the steps of a worker without a record.
func (m *model) work(s state, w uint8) {
	me := s.workers[w-1]
	if me.life == frozen {
		return
	}
	m.heartbeat(s, w)
	for a := uint8(1); a < attempts; a++ {
		if me.asked>>a&1 == 1 {
			m.answered(s, step{act: receivesAnswer, number: a, worker: w})
		}
		by := step{act: finishes, number: a, worker: w}
		if me.running>>a&1 == 1 {
			m.finish(s, by.choosing(int(completed)))
			m.finish(s, by.choosing(int(failed)))
			if waits := s; spend(&waits.left.Waits) {
				m.finish(waits, by.choosing(int(waiting)))
			}
		}
		if stopped := s; me.has(a) && spend(&stopped.left.Stops) {
			m.finish(stopped, by.choosing(int(interrupted)))
		}
		if me.held>>a&1 == 1 && (me.life == up || m.defect == StartsWhileSilent) {
			m.start(s, step{act: starts, number: a, worker: w})
		}
	}
	if me.life == up {
		m.reap(s, w)
	}
}

// mischief takes the faults of a worker.
func (m *model) mischief(s state, w uint8) {
	me := s.workers[w-1]
	if me.life == frozen {
		awake := s
		awake.workers[w-1].life = woken
		m.out(step{act: wakes, worker: w}, awake)
		for a := uint8(1); a < attempts; a++ {
			if me.held>>a&1 == 1 { // when it froze it had just checked its last heartbeat
				m.start(awake, step{act: startsLate, number: a, worker: w})
			}
		}
	}
	if cold := s; me.life == up && spend(&cold.left.Freezes) {
		cold.workers[w-1].life = frozen
		m.out(step{act: freezes, worker: w}, cold)
	}
	if spend(&s.left.Kills) {
		s.kill(w)
		m.out(step{act: dies, worker: w}, s)
	}
}
