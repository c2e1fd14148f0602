package dispatch

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

var farFuture = time.Unix(1<<40, 0)

// round is the position in a queue's round of fairness keys. Each key in turn starts as many jobs as its weight. The
// round is in the order of the keys' names, so a ledger needs only this position, even for ten thousand keys.
type round struct {
	Key  string `json:"key"`            // the key with the last start
	Used int    `json:"used,omitempty"` // how many starts that key has had in its turn
}

// firstLooks and lastLooks return how many jobs the store shows at the first and at the last look when a number of jobs
// may go out. If more keys wait than jobs may go out, the first look shows of each key as many jobs as the heaviest key
// starts in its turn. A key may need more, because it gets more starts if others have few jobs, or because some of its
// jobs have to be moved.
func (l *Ledger) firstLooks(most int) int {
	heaviest := 1
	for _, weight := range l.controls.weights {
		heaviest = max(heaviest, weight)
	}
	return min((1+heaviest)*most, lastLooks(most)/2)
}

func lastLooks(most int) int { return max(8*most, maxLooks) }

// UsesShares reports whether jobs of several fairness keys wait in a queue, or of a key that a control may hold back.
// Otherwise rank alone orders the queue.
func (l *Ledger) UsesShares(queue string) bool { return l.controls.byKey || len(l.keys[queue]) > 1 }

// LastTurn returns the key with the last start of a queue. some is false if nothing has started since the queue was
// empty, or if a control or a lane makes keys or jobs differ: only a SharePicker respects these.
func (l *Ledger) LastTurn(queue string) (key string, some bool) {
	last := l.rounds[queue]
	return last.Key, last.Used > 0 && !l.controls.byKey && len(l.controls.weights) == 0 && !l.UsesLanes(queue)
}

// NoteTurns notes that n jobs of a queue have started, each key one in its turn, and the key of the last one.
func (l *Ledger) NoteTurns(queue string, n int, last string) {
	l.rounds[queue] = round{last, 1}
	l.NoteStarts(queue, n)
	l.changed = true
}

// NoteOnlyKey notes that jobs of only one key wait in a queue, none of them below a rank.
func (l *Ledger) NoteOnlyKey(queue, key string, rank time.Time) {
	l.keys[queue] = []string{key}
	if rank.After(l.floors[queue]) {
		l.floors[queue] = rank
	}
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

// SharePicker chooses among a queue's waiting jobs when they have several fairness keys: from key to key, the best rank
// of each, of the jobs outside of all lanes and of all lanes that are open. It takes a round at the place where the
// step before left it.
//
// The caller reads what Next asks for, passes it to Show, and so on until Next asks for nothing more. It sends out
// what is Chosen, moves what is Moved, and calls Finish.
// Why keys take turns by name: docs/decisions/dispatch.md#fairness-keys-take-turns
type SharePicker struct {
	l      *Ledger
	queue  string
	most   int
	reach  KeyReach
	each   int // jobs shown of each key and lane, if it has so many
	shown  []Candidate
	keys   map[string]*keyJobs
	open   map[string]int  // by lane: the shown keys that are not closed
	chosen []Candidate     // each with the lane to which it belongs
	taken  map[Subject]int // starts of those
	moved  []Candidate
	last   round

	targets []Target
	places  *places
	to      []Target // of the chosen jobs
}

// keyJobs are the shown jobs of one fairness key.
type keyJobs struct {
	waiting []Candidate          // the best first
	kept    []Candidate          // passed over, because their lane is closed
	shownOf map[string]int       // by lane
	leftOf  map[string]int       // of those, how many no start has looked at
	lastOf  map[string]Candidate // of the shown ones
}

// KeyReach limits which jobs the store shows: of each lane the next keys of the round, and of each key the best jobs.
type KeyReach struct {
	Lanes  []string
	Floors []time.Time // of the lanes
	From   string      // the key with which the round begins
	Closed []string    // keys that may start nothing: of each the best job is shown, and Keys does not count them
	Keys   int         // one more than jobs may go out, because From may have had its turn
	Jobs   int         // roughly the number of all shown jobs, if the keys have equal parts
}

// NewSharePicker begins to choose up to most jobs of a queue for targets, of which there are as many or more.
func NewSharePicker(l *Ledger, queue string, most int, targets []Target) *SharePicker {
	most = min(most, len(targets))
	p := &SharePicker{l: l, queue: queue, most: most, targets: l.sortTargets(queue, targets)}
	p.places = newPlaces(l, queue, p.targets)
	p.reach = KeyReach{From: l.rounds[queue].Key, Closed: l.closedKeys(), Keys: most + 1}
	if floor, some := l.floors[queue]; some {
		p.reach.Lanes, p.reach.Floors = append(p.reach.Lanes, ""), append(p.reach.Floors, floor)
	}
	for lane, floor := range l.lanes[queue] {
		if p.places.roomUnder(subjectsOf(lane)) > 0 {
			p.reach.Lanes, p.reach.Floors = append(p.reach.Lanes, lane), append(p.reach.Floors, floor)
		}
	}
	return p
}

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

// Next decides about the shown jobs. It returns what to show next; false: nothing more.
func (p *SharePicker) Next() (KeyReach, bool) {
	switch {
	case len(p.reach.Lanes) == 0:
		return p.reach, false
	case p.reach.Jobs == 0:
		p.reach.Jobs = p.l.firstLooks(p.most)
		return p.reach, true
	}
	isFair := p.choose()
	if isFair || p.reach.Jobs == lastLooks(p.most) {
		p.l.cutShort = p.l.cutShort || !isFair && len(p.chosen) < p.most
		return p.reach, false
	}
	p.reach.Jobs, p.reach.Keys, p.shown = lastLooks(p.most), max(p.reach.Keys, maxLooks), nil
	return p.reach, true
}

// Show adds a job that was read. each is how many of a lane and key are shown if it has so many.
func (p *SharePicker) Show(c Candidate, each int) { p.shown, p.each = append(p.shown, c), each }

// choose fills the room from what is shown. It reports whether each key has had its turns: false if a key may have more
// jobs than were shown, or if it was the turn of a key of which no job was shown.
func (p *SharePicker) choose() (isFair bool) {
	p.chosen, p.moved, p.taken, p.last = nil, nil, map[Subject]int{}, round{}
	p.places, p.to = newPlaces(p.l, p.queue, p.targets), nil
	turns, used := p.inTurn()
	place, horizon := p.horizonOf(turns)
	isFair = true
	for at, before := 0, -1; len(p.chosen) < p.most && len(turns) > 0; {
		at %= len(turns)
		key := turns[at]
		isNext := place[key] > before || place[key] == before && used > 0
		isFair = isFair && (horizon < 0 || isNext && place[key] <= horizon)
		before = place[key]
		started, isBest := p.start(key)
		isFair = isFair && isBest
		if !started {
			turns, used = slices.Delete(turns, at, at+1), 0
			continue
		}
		used++
		p.last = round{key, used}
		if used >= p.l.controls.weightOf(key) {
			at, used = at+1, 0
		}
	}
	return isFair && (horizon < 0 || len(p.chosen) == p.most)
}

// horizonOf returns the places of the keys in the round, and the place up to which every lane has shown its keys; -1:
// all lanes have shown all.
func (p *SharePicker) horizonOf(turns []string) (place map[string]int, horizon int) {
	place, horizon = map[string]int{}, -1
	lastOf := map[string]int{}
	for i, key := range turns {
		place[key] = i
		if hasHadItsTurn := key == p.reach.From && i > 0; hasHadItsTurn {
			continue // it is shown first, but the keys before it in turns may not have been shown
		}
		for lane := range p.keys[key].shownOf {
			lastOf[lane] = i
		}
	}
	for lane, last := range lastOf {
		if !p.sawAllKeys(lane) && (horizon < 0 || last < horizon) {
			horizon = last
		}
	}
	return place, horizon
}

// inTurn sorts the shown jobs by key. It returns the keys, beginning with the one that has the turn, and how many
// starts of its turn that key has used.
func (p *SharePicker) inTurn() (turns []string, used int) {
	p.keys, p.open = map[string]*keyJobs{}, map[string]int{}
	for _, c := range p.shown {
		k := p.keys[c.Key]
		if k == nil {
			k = &keyJobs{shownOf: map[string]int{}, leftOf: map[string]int{}, lastOf: map[string]Candidate{}}
			p.keys[c.Key] = k
			turns = append(turns, c.Key)
		}
		k.waiting = append(k.waiting, c)
		k.shownOf[c.Lane]++
		k.leftOf[c.Lane]++
		if last, some := k.lastOf[c.Lane]; !some || byRank(last, c) < 0 {
			k.lastOf[c.Lane] = c
		}
	}
	for key, k := range p.keys {
		slices.SortFunc(k.waiting, byRank)
		for lane := range k.shownOf {
			if !slices.Contains(p.reach.Closed, key) {
				p.open[lane]++
			}
		}
	}
	slices.Sort(turns)
	before := p.l.rounds[p.queue]
	begin, isThere := slices.BinarySearch(turns, before.Key)
	switch {
	case isThere && before.Used < p.l.controls.weightOf(before.Key):
		used = before.Used
	case isThere:
		begin++
	}
	return slices.Concat(turns[begin:], turns[:begin]), used
}

// start chooses the best job of a key that controls allow, if there is one. isBest is false if a better job may come
// behind those that are shown.
func (p *SharePicker) start(key string) (started, isBest bool) {
	k := p.keys[key]
	isBest = true
	for len(k.waiting) > 0 && p.roomOf(keySubject(key)) > 0 {
		job := k.waiting[0]
		isBest = isBest && !p.hasMore(k, job)
		k.waiting = k.waiting[1:]
		k.leftOf[job.Lane]--
		isStarted := p.take(job)
		lane := p.l.laneOf(p.queue, job.JobType, job.OwnerID, buildOf(job.Lane))
		switch {
		case isStarted:
			job.Lane = lane
			p.chosen = append(p.chosen, job)
			return true, isBest
		case lane == job.Lane:
			k.kept = append(k.kept, job)
		case len(p.moved) == maxLooks:
			p.l.cutShort = true
			k.kept = append(k.kept, job)
			return false, true
		default: // the control is newer than the job
			job.Lane = lane
			p.moved = append(p.moved, job)
		}
	}
	return false, p.roomOf(keySubject(key)) <= 0 || !p.hasMore(k, Candidate{Rank: farFuture})
}

// take uses up the room and the target of a job, if its controls and the places leave some.
func (p *SharePicker) take(job Candidate) bool {
	subjects := p.l.controls.holding(job.class(p.queue))
	if slices.ContainsFunc(subjects, func(s Subject) bool { return p.roomOf(s) <= 0 }) {
		return false
	}
	to, some := p.places.take(job.JobType, job.OwnerID, buildOf(job.Lane))
	if !some {
		return false
	}
	for _, s := range subjects {
		p.taken[s]++
	}
	p.to = append(p.to, to)
	return true
}

// hasMore reports whether a key may have jobs behind the shown ones that go before another job.
func (p *SharePicker) hasMore(k *keyJobs, other Candidate) bool {
	for lane, n := range k.shownOf {
		if k.leftOf[lane] == 0 && n == p.each && byRank(k.lastOf[lane], other) < 0 &&
			p.places.roomUnder(subjectsOf(lane)) > 0 {
			return true
		}
	}
	return false
}

func (p *SharePicker) roomOf(s Subject) int { return p.l.roomOf(s) - p.taken[s] }

// Chosen returns the jobs that may go out.
func (p *SharePicker) Chosen() Picked {
	picked := pickedOf(p.chosen)
	picked.Targets = p.to
	return picked
}

// Left returns the targets that no job uses.
func (p *SharePicker) Left() []Target { return p.places.free }

// Moved returns the jobs that have to wait in another lane.
func (p *SharePicker) Moved() Picked { return pickedOf(p.moved) }

func pickedOf(jobs []Candidate) Picked {
	var picked Picked
	for _, c := range jobs {
		picked.JobIDs, picked.Lanes = append(picked.JobIDs, c.JobID), append(picked.Lanes, c.Lane)
	}
	return picked
}

// Finish enters the result of the step. sent are the chosen jobs that have gone out. The others were locked, and the
// transaction that has them locked enters them again.
func (p *SharePicker) Finish(sent []uuid.UUID) {
	hasGone := make(map[uuid.UUID]bool, len(sent))
	for _, id := range sent {
		hasGone[id] = true
	}
	for _, c := range p.chosen {
		if hasGone[c.JobID] {
			p.l.noteStart(c.class(p.queue))
		}
	}
	p.l.NoteStarts(p.queue, len(sent))
	if p.last != (round{}) {
		if p.l.rounds == nil {
			p.l.rounds = map[string]round{}
		}
		p.l.rounds[p.queue] = p.last
	}
	p.raiseFloors()
	for _, c := range p.moved {
		p.l.NoteWaiting(p.queue, c.Lane, c.Key, c.Rank)
	}
	p.l.changed = true
}

// raiseFloors enters the rank from which jobs may still wait in each lane of which all keys were shown, and which keys
// these are.
func (p *SharePicker) raiseFloors() {
	heads, left := map[string]time.Time{}, []string{}
	for key, k := range p.keys {
		isClosed := slices.Contains(p.reach.Closed, key)
		waits := false
		for lane, n := range k.shownOf {
			head, some := k.head(lane, n == p.each || isClosed)
			if !some {
				continue
			}
			waits = true
			if first, any := heads[lane]; !any || head.Before(first) {
				heads[lane] = head
			}
		}
		if waits {
			left = append(left, key)
		}
	}
	isAll := p.sawAllLanes()
	for _, lane := range p.reach.Lanes {
		if !p.sawAllKeys(lane) {
			isAll = false
			continue // further keys may wait
		}
		floors, name := p.l.floors, p.queue
		if lane != "" {
			floors, name = p.l.lanes[p.queue], lane
		}
		if head, some := heads[lane]; some {
			floors[name] = head
		} else {
			delete(floors, name)
		}
	}
	if isAll && len(left) > 0 && len(left) < several {
		p.l.keys[p.queue] = left
	}
}

// sawAllKeys reports whether no key of a lane is left that was not shown.
func (p *SharePicker) sawAllKeys(lane string) bool { return p.open[lane] < p.reach.Keys }

// sawAllLanes reports whether no lane of the queue was closed.
func (p *SharePicker) sawAllLanes() bool {
	for lane := range p.l.lanes[p.queue] {
		if !slices.Contains(p.reach.Lanes, lane) {
			return false
		}
	}
	return true
}

// head returns the rank of the best job left in a lane. If all shown jobs were chosen and the lane may have more, it
// returns the rank of the last shown job.
func (k *keyJobs) head(lane string, mayHaveMore bool) (rank time.Time, some bool) {
	for _, c := range slices.Concat(k.waiting, k.kept) {
		if c.Lane == lane && (!some || c.Rank.Before(rank)) {
			rank, some = c.Rank, true
		}
	}
	if !some && mayHaveMore {
		return k.lastOf[lane].Rank, true
	}
	return rank, some
}
