package dispatch

import (
	"time"

	"github.com/google/uuid"
)

const (
	// MaxLooks bounds the jobs of a queue that one step looks at: those that go out, and those that have to wait in
	// another lane because a control was set after they came. It also bounds the fairness keys.
	MaxLooks = 1000
	// maxSources bounds how many sources one statement reads.
	maxSources = 100
)

// Picker chooses among a queue's waiting jobs when more than their ranks matters. The fairness keys take turns, from
// the place in the round where the step before stopped. The best rank of each key goes first, of the jobs outside of
// all lanes and of all lanes that are open; with one key, rank alone decides. When a control is set, the waiting jobs
// are in the lanes of earlier controls. Jobs that now have to wait are moved when their turn comes, and are not looked
// at again as long as their lane is closed.
//
// The caller shows what Next asks for until it asks for nothing more, moves what is Moved, sends out what is Chosen,
// and calls Sent. It does all this again as long as Sent reports true, and then calls Finish.
// Why keys take turns by name: docs/decisions/dispatch.md#fairness-keys-take-turns
type Picker struct {
	l       *Ledger
	queue   string
	most    int // further attempts that may go out
	places  *places
	looks   int // jobs that may still be looked at
	reach   *KeyReach
	turns   turns
	chosen  []choice
	moved   []Candidate // each with the lane to which it belongs by now
	isMoved int         // how many of moved the caller has moved
}

// Candidate is a waiting job.
type Candidate struct {
	JobID   uuid.UUID
	JobType string
	OwnerID string
	Rank    time.Time
	Lane    string
	Key     string // its fairness key
}

func (c *Candidate) class(queue string) Class { return Class{queue, c.JobType, c.OwnerID, c.Key} }

// choice is a job that may go out.
type choice struct {
	Candidate
	from *Source
	lane string // to which the job belongs by now
	to   Target
}

// Picked has jobs, each with the lane to which it belongs.
type Picked struct {
	JobIDs  []uuid.UUID
	Lanes   []string
	Targets []Target // of those that go out
}

// NewPicker begins to choose up to most jobs of a queue for targets, of which there are as many or more.
func NewPicker(l *Ledger, queue string, most int, targets []Target) *Picker {
	most = min(most, len(targets))
	p := &Picker{l: l, queue: queue, most: most, looks: max(most, MaxLooks)}
	p.places = newPlaces(l, queue, l.sortTargets(queue, targets))
	p.turns = newTurns(l.rounds[queue], l.controls)
	floors := l.floorsOf(queue)
	if keys := l.keys[queue]; len(keys) == 1 && !l.controls.byKey {
		for lane, floor := range floors {
			p.turns.add(&Source{Lane: lane, Key: keys[0], AfterRank: floor, more: true})
		}
		return p
	}
	p.reach = &KeyReach{From: p.turns.from, Closed: l.closedKeys(), Keys: most + 1} // one more, to see the last one
	for lane, floor := range floors {
		if p.places.roomUnder(subjectsOf(lane)) > 0 {
			p.reach.Lanes = append(p.reach.Lanes, lane)
			if p.turns.goesOn {
				p.turns.add(&Source{Lane: lane, Key: p.turns.from, AfterRank: floor, more: true})
			}
		}
	}
	return p
}

// Next decides about the shown jobs. It returns what to show next, keys or sources; neither if the room is filled, no
// job is left, or it has looked at enough.
func (p *Picker) Next() (*KeyReach, []*Source) {
	for len(p.chosen) < p.most {
		if p.reach.begin() {
			return p.reach, nil
		}
		lacksKeys := p.reach.lacksKeys()
		t := p.turns.next(lacksKeys && !p.reach.isWide)
		switch {
		case lacksKeys && p.reach.mayPrecede(t, &p.turns) && p.reach.widen():
			return p.reach, nil
		case t == nil:
			p.l.cutShort = p.l.cutShort || lacksKeys
			return nil, nil
		}
		switch best := p.best(t); {
		case best == nil:
			t.isDone = true
		case len(best.shown) > 0:
			p.decide(best)
		case p.looks <= 0:
			p.l.cutShort = true
			return nil, nil
		default:
			return nil, p.ask()
		}
	}
	return nil, nil
}

// decide lets the best job of a source out. If that is impossible, the job waits in the lane to which it belongs now.
func (p *Picker) decide(s *Source) {
	job := s.shown[0]
	s.shown = s.shown[1:]
	build, class := buildOf(job.Lane), job.class(p.queue)
	to, some := Target{}, p.l.allows(class)
	if some {
		to, some = p.places.take(job.JobType, job.OwnerID, build)
	}
	lane := p.l.laneOf(p.queue, job.JobType, job.OwnerID, build)
	switch {
	case some:
		p.l.noteStarts(class, 1)
		p.chosen = append(p.chosen, choice{job, s, lane, to})
		p.turns.noteStart(p.l.controls)
	case lane == job.Lane:
		s.kept = append(s.kept, job)
	default: // a control is newer than the job
		job.Lane = lane
		p.moved = append(p.moved, job)
	}
}

// Chosen returns the jobs that may go out.
func (p *Picker) Chosen() (picked Picked) {
	for _, c := range p.chosen {
		picked.JobIDs, picked.Lanes = append(picked.JobIDs, c.JobID), append(picked.Lanes, c.lane)
		picked.Targets = append(picked.Targets, c.to)
	}
	return picked
}

// Moved returns the jobs that have to wait in another lane.
func (p *Picker) Moved() (picked Picked) {
	for _, c := range p.moved[p.isMoved:] {
		picked.JobIDs, picked.Lanes = append(picked.JobIDs, c.JobID), append(picked.Lanes, c.Lane)
	}
	p.isMoved = len(p.moved)
	return picked
}

// Sent takes which of the chosen jobs have gone out. Another transaction has the others locked, and enters them again
// when it dispatches. Sent reports whether further jobs may have their targets.
func (p *Picker) Sent(ids []uuid.UUID) (again bool) {
	hasGone := make(map[uuid.UUID]bool, len(ids))
	for _, id := range ids {
		hasGone[id] = true
	}
	for _, c := range p.chosen {
		if !hasGone[c.JobID] {
			c.from.kept = append(c.from.kept, c.Candidate)
			p.l.noteStarts(c.class(p.queue), -1)
			p.places.giveBack(c.to)
			again = true
		}
	}
	p.l.NoteStarts(p.queue, len(ids))
	p.l.changed = p.l.changed || len(ids) > 0
	p.most -= len(ids)
	p.chosen = nil
	return again
}

// Left returns the targets that no job uses.
func (p *Picker) Left() []Target { return p.places.free }

// Finish enters the rank from which jobs may still wait in each lane that was looked at, the keys of which some may
// wait, the place in the round, and the moved jobs.
func (p *Picker) Finish() {
	heads, left := map[string]time.Time{}, []string{}
	for _, t := range p.turns.list {
		waits := false
		for _, s := range t.sources {
			head, some := s.first()
			if before, known := heads[s.Lane]; some && (!known || head.Before(before)) {
				heads[s.Lane] = head
			}
			waits = waits || some
		}
		if waits {
			left = append(left, t.key)
		}
	}
	sawAll := p.reach != nil
	for lane := range p.l.floorsOf(p.queue) {
		if p.reach.sawAllOf(lane) {
			head, some := heads[lane]
			p.l.setFloor(p.queue, lane, head, some)
		} else {
			sawAll = false
		}
	}
	if sawAll && len(left) > 0 && len(left) < several {
		p.l.keys[p.queue], p.l.changed = left, true
	}
	if p.reach != nil {
		p.l.setRound(p.queue, p.turns.last)
	}
	for _, c := range p.moved {
		p.l.NoteWaiting(p.queue, c.Lane, c.Key, c.Rank)
		p.l.changed = true
	}
}
