package dispatch

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"github.com/google/uuid"
)

// Source has the waiting jobs of one fairness key in one lane, or outside of all lanes.
type Source struct {
	Lane, Key string
	AfterRank time.Time // only jobs behind this rank and id have not been shown yet
	AfterID   uuid.UUID
	Most      int // how many jobs to show

	under    []Subject
	shown    []Candidate // and not decided
	kept     []Candidate // decided: they cannot go out in this step
	more     bool        // further jobs may stand behind the shown ones
	rounds   int
	isClosed bool // it has no room
}

// byRank is the order in which the jobs of one key go out.
func byRank(a, b Candidate) int {
	return cmp.Or(a.Rank.Compare(b.Rank), bytes.Compare(a.JobID[:], b.JobID[:]))
}

// head returns the rank at which the best undecided job of the source may stand.
func (s *Source) head() time.Time {
	if len(s.shown) > 0 {
		return s.shown[0].Rank
	}
	return s.AfterRank
}

// precedes reports whether the best undecided job of the source may go before that of another.
func (s *Source) precedes(other *Source) bool {
	if len(s.shown) > 0 && len(other.shown) > 0 {
		return byRank(s.shown[0], other.shown[0]) < 0
	}
	return cmp.Or(s.head().Compare(other.head()), cmp.Compare(len(s.shown), len(other.shown))) < 0
}

func (s *Source) mayOpen() bool { return !s.isClosed && (s.more || len(s.shown) > 0) }

// first returns the rank at which the best job that still waits may stand.
func (s *Source) first() (rank time.Time, some bool) {
	if len(s.shown) > 0 || s.more {
		rank, some = s.head(), true
	}
	for _, c := range s.kept {
		if !some || c.Rank.Before(rank) {
			rank, some = c.Rank, true
		}
	}
	return rank, some
}

// ShowKey adds the best job of a key in a lane.
func (p *Picker) ShowKey(c Candidate) {
	p.turns.add(&Source{
		Lane: c.Lane, Key: c.Key, AfterRank: c.Rank, AfterID: c.JobID, shown: []Candidate{c}, more: true,
	})
	p.reach.note(c, &p.turns)
}

// Show adds all jobs that were read for the sources.
func (p *Picker) Show(sources []*Source, jobs []Candidate) {
	type place struct{ lane, key string }
	at := map[place]*Source{}
	for _, s := range sources {
		at[place{s.Lane, s.Key}] = s
	}
	for _, c := range jobs {
		s := at[place{c.Lane, c.Key}]
		s.shown = append(s.shown, c)
	}
	for _, s := range sources {
		p.looks += s.Most - len(s.shown)
		s.more = len(s.shown) == s.Most
		// The join returns rows in no defined order, and a job whose rank changed while it was being locked comes at
		// the place of its old rank.
		slices.SortFunc(s.shown, byRank)
		if n := len(s.shown); n > 0 {
			s.AfterRank, s.AfterID = s.shown[n-1].Rank, s.shown[n-1].JobID
		}
	}
}

// best returns the source with the best job of a key; nil: none may let a job out. It checks the room of no other
// source, of which there may be hundreds.
func (p *Picker) best(t *turn) *Source {
	for p.l.roomOf(keySubject(t.key)) > 0 {
		var best *Source
		for _, s := range t.sources {
			if s.mayOpen() && (best == nil || s.precedes(best)) {
				best = s
			}
		}
		if best == nil || !p.closes(best) {
			return best
		}
	}
	return nil
}

// closes reports whether a source has no room. Room only shrinks while jobs are chosen, so the source stays closed.
func (p *Picker) closes(s *Source) bool {
	if s.under == nil {
		s.under = subjectsOf(s.Lane)
	}
	s.isClosed = p.places.roomUnder(s.under) <= 0
	return s.isClosed
}

// ask returns the open sources without a shown job, of the keys whose turns come before the room is filled, and how
// much to show of each.
func (p *Picker) ask() (sources []*Source) {
	left := p.most - len(p.chosen)
	for t, each := range p.turns.ahead(left, p.l.controls) {
		blind := slices.DeleteFunc(slices.Clone(t.sources), func(s *Source) bool {
			return len(s.shown) > 0 || !s.mayOpen() || p.closes(s)
		})
		slices.SortFunc(blind, func(a, b *Source) int { return a.AfterRank.Compare(b.AfterRank) })
		for _, s := range blind {
			if s.Most = p.mostOf(s, each); s.Most == 0 || len(sources) == maxSources {
				return sources
			}
			sources = append(sources, s)
		}
		if left -= each; left <= 0 {
			break
		}
	}
	return sources
}

// mostOf returns how many jobs of a source to show: at first no more than can go out, then more each time, because the
// jobs shown before had to be moved.
func (p *Picker) mostOf(s *Source, most int) int {
	if s.rounds == 0 {
		most = min(most, p.places.roomUnder(s.under))
	}
	most = min(most<<min(2*s.rounds, 12), p.looks)
	s.rounds++
	p.looks -= most
	return most
}
