package dispatch

import (
	"cmp"
	"iter"
	"slices"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// round is the position in a queue's round of fairness keys. Each key in turn starts as many jobs as its weight. The
// round is in the order of the keys' names, so a ledger needs only this position, even for ten thousand keys.
type round struct {
	Key  string `json:"key"`            // the key with the last start
	Used int    `json:"used,omitempty"` // how many starts that key has had in its turn
}

// UsesShares reports whether jobs of several fairness keys wait in a queue, or of a key that a control may hold back.
// Otherwise rank alone orders the queue.
func (l *Ledger) UsesShares(queue string) bool { return l.controls.byKey || len(l.keys[queue]) > 1 }

// closedKeys returns the fairness keys that a control holds back now.
func (l *Ledger) closedKeys() []string {
	closed := []string{}
	add := func(s Subject) {
		if s.Kind == jobevent.ControlKey && l.roomOf(s) == 0 && !slices.Contains(closed, s.Name) {
			closed = append(closed, s.Name)
		}
	}
	for s := range l.controls.bySubject {
		add(s)
	}
	for s := range l.running {
		add(s)
	}
	for s := range l.buckets {
		add(s)
	}
	return closed
}

// setRound notes the last start of a queue; none: it stays as it was.
func (l *Ledger) setRound(queue string, last round) {
	if last == (round{}) {
		return
	}
	if l.rounds == nil {
		l.rounds = map[string]round{}
	}
	l.rounds[queue], l.changed = last, true
}

// tidyKeys forgets the keys and the round of queues in which nothing waits.
func (l *Ledger) tidyKeys() {
	for queue := range l.keys {
		if _, some := l.floors[queue]; !some && len(l.lanes[queue]) == 0 {
			delete(l.keys, queue)
			delete(l.rounds, queue)
		}
	}
}

// turn is a fairness key with the sources of its waiting jobs.
type turn struct {
	key     string
	sources []*Source
	isDone  bool // it starts nothing more
}

// turns is the round of the keys that are shown.
type turns struct {
	from   string // the key with the last start
	goesOn bool   // it has starts left in its turn, and comes first; otherwise it comes last
	list   []*turn
	at     int // whose turn it is
	used   int // how many starts that key has had in its turn
	last   round
}

func newTurns(before round, controls *Controls) turns {
	t := turns{from: before.Key, goesOn: before.Used > 0 && before.Used < controls.weightOf(before.Key)}
	if t.goesOn {
		t.used = before.Used
	}
	return t
}

// compare orders keys as the round does.
func (ts *turns) compare(a, b string) int {
	ahead := func(key string) int {
		switch {
		case key > ts.from:
			return 1
		case key == ts.from && ts.goesOn:
			return 0
		}
		return 2
	}
	return cmp.Or(cmp.Compare(ahead(a), ahead(b)), cmp.Compare(a, b))
}

// add adds a source, unless it is there. After the first turn, new keys come behind the one whose turn it is.
func (ts *turns) add(s *Source) {
	at, isThere := slices.BinarySearchFunc(ts.list, s.Key, func(t *turn, key string) int { return ts.compare(t.key, key) })
	if !isThere {
		ts.list = slices.Insert(ts.list, at, &turn{key: s.Key})
	}
	t := ts.list[at]
	if !slices.ContainsFunc(t.sources, func(known *Source) bool { return known.Lane == s.Lane }) {
		t.sources = append(t.sources, s)
	}
}

// next returns the key whose turn it is, and passes over those that start nothing more; nil: there is no other. At the
// end of the list a new round begins, unless it is to stop there.
func (ts *turns) next(stopsAtEnd bool) *turn {
	for range ts.list {
		if ts.at == len(ts.list) {
			if stopsAtEnd {
				return nil
			}
			ts.at = 0
		}
		if t := ts.list[ts.at]; !t.isDone {
			return t
		}
		ts.at, ts.used = ts.at+1, 0
	}
	return nil
}

// noteStart notes that the key whose turn it is has started a job.
func (ts *turns) noteStart(controls *Controls) {
	key := ts.list[ts.at].key
	ts.used++
	ts.last = round{key, ts.used}
	if ts.used >= controls.weightOf(key) {
		ts.at, ts.used = ts.at+1, 0
	}
}

// ahead returns the keys from the one whose turn it is on, each with how many jobs it would start of that many if all
// keys had enough.
func (ts *turns) ahead(starts int, controls *Controls) iter.Seq2[*turn, int] {
	weights := 0
	for _, t := range ts.list {
		if !t.isDone {
			weights += controls.weightOf(t.key)
		}
	}
	return func(yield func(*turn, int) bool) {
		for i := range ts.list {
			t := ts.list[(ts.at+i)%len(ts.list)]
			if !t.isDone && !yield(t, controls.weightOf(t.key)*((starts+weights-1)/weights)) {
				return
			}
		}
	}
}

// KeyReach limits of which keys the store shows the best jobs: in each lane of the next keys of the round.
type KeyReach struct {
	Lanes  []string
	From   string   // the key with the last start: the round begins after it, and ends with it
	Closed []string // keys that may start nothing: their best jobs are shown, but Keys does not count them
	Keys   int

	hasBegun, isWide bool
	lanes            map[string]*laneReach
}

// laneReach is what was shown of a lane.
type laneReach struct {
	open int    // keys that are not closed
	last string // the last one in the round
}

// begin reports whether the store has to show the first keys.
func (r *KeyReach) begin() bool {
	if r == nil || r.hasBegun {
		return false
	}
	r.hasBegun, r.lanes = true, map[string]*laneReach{}
	return len(r.Lanes) > 0
}

// widen reports whether the store has to show more keys, because those that it has shown start too little.
func (r *KeyReach) widen() bool {
	if r.isWide {
		return false
	}
	r.isWide, r.Keys, r.lanes = true, max(r.Keys, MaxLooks), map[string]*laneReach{}
	return true
}

func (r *KeyReach) note(c Candidate, ts *turns) {
	if slices.Contains(r.Closed, c.Key) {
		return
	}
	lane := r.lanes[c.Lane]
	if lane == nil {
		lane = &laneReach{last: c.Key}
		r.lanes[c.Lane] = lane
	}
	lane.open++
	if ts.compare(c.Key, lane.last) > 0 {
		lane.last = c.Key
	}
}

func (l *laneReach) lacksKeys(r *KeyReach) bool { return l != nil && l.open >= r.Keys }

// lacksKeys reports whether further keys may wait that were not shown.
func (r *KeyReach) lacksKeys() bool {
	if r == nil {
		return false
	}
	for _, lane := range r.lanes {
		if lane.lacksKeys(r) {
			return true
		}
	}
	return false
}

// mayPrecede reports whether a key that was not shown may have its turn before a shown one; nil: before the next round.
func (r *KeyReach) mayPrecede(t *turn, ts *turns) bool {
	for _, lane := range r.lanes {
		if lane.lacksKeys(r) && (t == nil || ts.compare(t.key, lane.last) > 0) {
			return true
		}
	}
	return false
}

// sawAllOf reports whether no key of a lane is left that was not shown.
func (r *KeyReach) sawAllOf(lane string) bool {
	return r == nil || r.hasBegun && slices.Contains(r.Lanes, lane) && !r.lanes[lane].lacksKeys(r)
}
