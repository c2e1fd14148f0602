package dispatch

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"github.com/google/uuid"
)

const (
	// maxLooks bounds the jobs of a queue that one step looks at: those that go out, and those that have to wait in
	// another lane because a control was set after they came.
	maxLooks = 1000
	// maxSources bounds how many lanes one statement reads.
	maxSources = 100
)

// Picker chooses among a queue's waiting jobs when controls hold some of them back: the best rank first, of the jobs
// outside of all lanes and of all lanes that are open. When a control is set, the waiting jobs are in the lanes of
// earlier controls. Jobs that now have to wait are moved when their turn comes, and are not looked at again as long as
// their lane is closed.
//
// The caller reads what Next asks for, shows it, and calls Looked, until Next asks for nothing more. Then it calls
// Finish.
type Picker struct {
	Chosen, Moved Picked

	l       *Ledger
	queue   string
	most    int // attempts that may go out
	places  *places
	looks   int // jobs that may still be looked at
	sources []*Source
	moved   []Candidate
}

// Picked has jobs, each with the lane to which it belongs.
type Picked struct {
	JobIDs  []uuid.UUID
	Lanes   []string
	Targets []Target // of those that go out
}

// Without returns the targets of the jobs that did not go out after all.
func (p Picked) Without(sent []uuid.UUID) (left []Target) {
	for i, id := range p.JobIDs {
		if !slices.Contains(sent, id) {
			left = append(left, p.Targets[i])
		}
	}
	return left
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

// byRank is the order in which the jobs of one key go out.
func byRank(a, b Candidate) int {
	return cmp.Or(a.Rank.Compare(b.Rank), bytes.Compare(a.JobID[:], b.JobID[:]))
}

func (c *Candidate) class(queue string) Class { return Class{queue, c.JobType, c.OwnerID, c.Key} }

// Source is one lane, or the jobs outside of all lanes.
type Source struct {
	Lane      string
	AfterRank time.Time // only jobs behind this rank and id have not been shown yet
	AfterID   uuid.UUID
	Most      int // how many jobs to show

	under   []Subject
	shown   []Candidate // and not decided
	more    bool        // further jobs may stand behind the shown ones
	rounds  int
	touched bool
	closed  bool // it has no room
}

// head returns the rank at which the best job of the source may stand.
func (s *Source) head() time.Time {
	if len(s.shown) > 0 {
		return s.shown[0].Rank
	}
	return s.AfterRank
}

// Show adds a job that was read for the source.
func (s *Source) Show(c Candidate) { s.shown = append(s.shown, c) }

// NewPicker begins to choose up to most jobs of a queue for targets, of which there are as many or more.
func NewPicker(l *Ledger, queue string, most int, targets []Target) *Picker {
	p := &Picker{l: l, queue: queue, most: min(most, len(targets)), looks: maxLooks}
	p.places = newPlaces(l, queue, l.sortTargets(queue, targets))
	if floor, some := l.floors[queue]; some {
		p.sources = append(p.sources, &Source{AfterRank: floor, more: true})
	}
	for lane, floor := range l.lanes[queue] {
		p.sources = append(p.sources, &Source{Lane: lane, under: subjectsOf(lane), AfterRank: floor, more: true})
	}
	return p
}

// Next decides about the shown jobs, the best first. It returns the sources of which more has to be shown; none if the
// room is filled, no job is left, or it has looked at enough.
func (p *Picker) Next() []*Source {
	for len(p.Chosen.JobIDs) < p.most {
		best := p.best()
		switch {
		case best == nil:
			return nil
		case len(best.shown) > 0:
			p.decide(best)
			continue
		case p.looks <= 0:
			p.l.cutShort = true
			return nil
		}
		return p.ask(slices.DeleteFunc(slices.Clone(p.sources), func(s *Source) bool { return !p.mayOpen(s) || p.closes(s) }))
	}
	return nil
}

// best returns the source with the best job; nil: none may let a job out. It checks the room of no other source, of
// which there may be hundreds.
func (p *Picker) best() *Source {
	for {
		var best *Source
		for _, s := range p.sources {
			if p.mayOpen(s) && (best == nil ||
				cmp.Or(s.head().Compare(best.head()), cmp.Compare(len(s.shown), len(best.shown))) < 0) {
				best = s
			}
		}
		if best == nil || !p.closes(best) {
			return best
		}
	}
}

func (p *Picker) mayOpen(s *Source) bool { return !s.closed && (s.more || len(s.shown) > 0) }

// closes reports whether a source has no room. Room only shrinks within a step, so the source stays closed.
func (p *Picker) closes(s *Source) bool {
	s.closed = p.places.roomUnder(s.under) <= 0
	return s.closed
}

// decide lets the best job of a source out, or moves it to the lane to which it belongs by now.
func (p *Picker) decide(s *Source) {
	job := s.shown[0]
	s.shown = s.shown[1:]
	build := buildOf(job.Lane)
	if class := job.class(p.queue); p.l.allows(class) {
		if to, some := p.places.take(job.JobType, job.OwnerID, build); some {
			p.l.noteStart(class)
			p.Chosen.JobIDs = append(p.Chosen.JobIDs, job.JobID)
			p.Chosen.Lanes = append(p.Chosen.Lanes, p.l.laneOf(p.queue, job.JobType, job.OwnerID, build))
			p.Chosen.Targets = append(p.Chosen.Targets, to)
			return
		}
	}
	lane := p.l.laneOf(p.queue, job.JobType, job.OwnerID, build)
	p.Moved.JobIDs = append(p.Moved.JobIDs, job.JobID)
	p.Moved.Lanes = append(p.Moved.Lanes, lane)
	p.moved = append(p.moved, job)
}

// ask returns the open sources of which no job is shown, and how much to show of each.
func (p *Picker) ask(open []*Source) []*Source {
	blind := slices.DeleteFunc(open, func(s *Source) bool { return len(s.shown) > 0 })
	slices.SortFunc(blind, func(a, b *Source) int { return a.AfterRank.Compare(b.AfterRank) })
	blind = blind[:min(len(blind), maxSources)]
	for i, s := range blind {
		if s.Most = p.mostOf(s); s.Most == 0 {
			return blind[:i]
		}
	}
	return blind
}

// mostOf returns how many jobs of a source to show: at first no more than can go out, then more each time, because the
// jobs shown before had to be moved.
func (p *Picker) mostOf(s *Source) int {
	most := p.most - len(p.Chosen.JobIDs)
	if s.rounds == 0 {
		most = min(most, p.places.roomUnder(s.under))
	}
	most = min(most<<min(2*s.rounds, 12), p.looks)
	s.rounds++
	p.looks -= most
	return most
}

// Looked records that everything for which Next asked has been shown.
func (p *Picker) Looked(sources []*Source) {
	for _, s := range sources {
		p.looks += s.Most - len(s.shown)
		s.touched, s.more = true, len(s.shown) == s.Most
		// The join returns rows in no defined order, and a job whose rank changed while it was being locked comes at
		// the place of its old rank.
		slices.SortFunc(s.shown, byRank)
		if n := len(s.shown); n > 0 {
			s.AfterRank, s.AfterID = s.shown[n-1].Rank, s.shown[n-1].JobID
		}
	}
}

// Left returns the targets that no job uses.
func (p *Picker) Left() []Target { return p.places.free }

// Finish enters the rank from which jobs may still wait in each source that was looked at, and the moved jobs.
func (p *Picker) Finish() {
	for _, s := range p.sources {
		if !s.touched {
			continue
		}
		floors, key := p.l.floors, p.queue
		if s.Lane != "" {
			floors, key = p.l.lanes[p.queue], s.Lane
		}
		if s.more || len(s.shown) > 0 {
			floors[key] = s.head()
		} else {
			delete(floors, key)
		}
		p.l.changed = true
	}
	for i, lane := range p.Moved.Lanes {
		p.l.NoteWaiting(p.queue, lane, p.moved[i].Key, p.moved[i].Rank)
	}
}
