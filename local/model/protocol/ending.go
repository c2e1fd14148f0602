package protocol

import (
	"slices"

	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// ender checks that a job ends once no further fault happens.
type ender struct {
	m    *model
	good map[state]struct{} // states from which the job is known to end well

	now   state
	way   []taken
	moved bool
}

func newEnder(limits Limits, defect Defect) *ender {
	e := &ender{m: &model{limits: limits, defect: defect}, good: map[state]struct{}{}}
	e.m.out = func(by step, to state) {
		if by.killed == 0 && !e.moved && e.now != to {
			e.now, e.moved = to, true
			e.way = append(e.way, taken{by: by})
		}
	}
	return e
}

// stuck empties Kafka in s, takes the certain steps, and returns them if they do not lead to a good end.
func (e *ender) stuck(s state) []taken {
	e.way = append(e.way[:0], taken{by: step{act: wipes}})
	e.now = s
	e.now.kafka, e.now.left = kafka{}, Budget{}
	var path []state
	for {
		e.way[len(e.way)-1].exchanged = e.now.canonical(false)
		if _, known := e.good[e.now]; known || e.now.wellEnded() {
			break
		}
		if slices.Contains(path, e.now) {
			return append(e.way, taken{by: step{act: goesRound}})
		}
		path = append(path, e.now)
		if !e.step() {
			return append(e.way, taken{by: step{act: stops}})
		}
	}
	for _, p := range path {
		e.good[p] = struct{}{}
	}
	return nil
}

func (s *state) wellEnded() bool {
	if s.api.gone {
		return s.job.deleted
	}
	hasDeadLetter := s.job.name() != jobstate.Failed || s.dead>>s.job.attempt&1 == 1
	return s.job.name().Terminal() && s.api.shown == s.job.shown() && !s.api.kept && hasDeadLetter
}

// step takes a certain step: each record is consumed once, no handler returns by itself, and no frozen worker wakes.
// The clocks that republish come last.
func (e *ender) step() bool {
	e.moved = false
	return e.consume() || e.work() || e.republish()
}

func (e *ender) consume() bool {
	if e.now.kafka.statuses[0].version > 0 {
		e.m.project(e.now, 0)
		return true
	}
	consumed := false
	e.now.kafka.each(func(r record) {
		for w := noWorker; w <= workers && !consumed; w++ {
			if e.now.mayConsume(w, r) {
				consumed = true
				e.now.kafka.drop(r)
				e.m.consume(e.now, r, w)
			}
		}
	})
	return consumed
}

func (e *ender) work() bool {
	for w := uint8(1); w <= workers && !e.moved; w++ {
		me := e.now.workers[w-1]
		if me.life == frozen {
			continue
		}
		e.m.heartbeat(e.now, w)
		for a := uint8(1); a < attempts && !e.moved; a++ {
			if me.held>>a&1 == 1 {
				e.m.start(e.now, step{act: starts, number: a, worker: w})
			}
		}
		if !e.moved {
			e.m.reap(e.now, w)
		}
	}
	if next := e.now; next.workers[0].life == frozen && next.workers[1].life == frozen {
		next.kill(1) // if all are frozen, an operator restarts one
		e.m.out(step{act: dies, worker: 1}, next)
	}
	if next := e.now; !e.moved && e.m.dispatch(&next.job) {
		e.m.commit(step{act: dispatches}, next, e.m.current(next.job)...)
	}
	return e.moved
}

func (e *ender) republish() bool {
	e.m.ask(e.now)
	asked := e.moved
	e.moved = false
	e.m.deadline(e.now)
	asked = asked || e.moved
	e.moved = false
	e.m.reconcile(e.now)
	return e.moved || asked
}
