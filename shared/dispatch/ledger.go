package dispatch

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
)

// Ledger is the dispatch state in the hands of the transaction that has it locked. The package's comment describes what
// may be stale in it.
//
// One change can be missed: a waiting job is skipped because another transaction has it locked, and that transaction
// rolls back. A transaction that commits enters again the jobs that it had locked and left waiting. After a rollback
// only the watchdog's count finds them.
type Ledger struct {
	counts
	followUps

	At time.Time // when the row was locked, by the database's clock

	revision         int64 // rises with each change
	controlsRevision int64 // of the set of controls; 0: there never was a control
	buckets          map[Subject]bucket
	opensAt          time.Time        // when a limit on starts a second lets out a job; zero: none is held back
	unreleased       []uuid.UUID      // jobs that have ended, of which not all dependents are released
	dependents       int64            // rows of dependencies
	driftRevision    int64            // of the ledger into which the watchdog's last drift was entered
	rounds           map[string]round // by queue
	buildsAt         time.Time        // when jobs that stay on a build waited last; zero: not lately

	controls *Controls
	sorted   map[string]sorting  // by queue
	live     []*Worker           // the workers of the last CompareTypes, those that pull workers form by what they ask for
	runners  map[string]*runners // of these, by queue; nil: CompareTypes was not called

	changed       bool
	wakeClock     bool // something is due sooner than the function dispatch expects
	hadUnreleased bool // when it was read, so the function dispatch knows of them
	isClock       bool // the transaction is of the function dispatch, which needs no waking
	cutShort      bool // more jobs could be looked at than one step does
}

// Row is the ledger as its row keeps it.
type Row struct {
	N        int64
	InFlight json.RawMessage
	Floors   json.RawMessage
	DueFloor *time.Time
	More     json.RawMessage
	At       time.Time
}

// extra is the JSON of the column more: the part of the ledger that few installations need.
type extra struct {
	Controls int64                           `json:"controls,omitempty"`
	Running  map[Subject]int                 `json:"running,omitempty"`
	Buckets  map[Subject]bucket              `json:"buckets,omitempty"`
	Lanes    map[string]map[string]time.Time `json:"lanes,omitempty"`
	OpensAt  time.Time                       `json:"opensAt,omitzero"`

	Ended      []uuid.UUID `json:"ended,omitempty"`
	Dependents int64       `json:"dependents,omitempty"`

	Entered int64 `json:"entered,omitempty"`

	Keys   map[string][]string `json:"keys,omitempty"`
	Rounds map[string]round    `json:"rounds,omitempty"`

	Sorted map[string]sorting `json:"sorted,omitempty"`
	Asked  []kindCount        `json:"asked,omitempty"`
	Builds time.Time          `json:"builds,omitzero"`

	High map[string]map[string]map[int16]int `json:"high,omitempty"` // attempts in partitions that only some topics have
}

// noExtra is the text of an empty extra. It is neither encoded nor decoded: most ledgers have none.
const noExtra = "{}"

// ReadLedger reads the ledger from its row.
func ReadLedger(row Row) (*Ledger, error) {
	l := &Ledger{counts: newCounts(), At: row.At, revision: row.N}
	if row.DueFloor != nil {
		l.due = *row.DueFloor
	}
	if err := json.Unmarshal(row.InFlight, &l.out.low); err != nil {
		return nil, fmt.Errorf("read what is in flight: %w", err)
	}
	if err := json.Unmarshal(row.Floors, &l.floors); err != nil {
		return nil, fmt.Errorf("read floors of the queues: %w", err)
	}
	if string(row.More) == noExtra {
		l.fillKeys()
		return l, nil
	}
	var e extra
	if err := json.Unmarshal(row.More, &e); err != nil {
		return nil, fmt.Errorf("read the rest of the dispatch state: %w", err)
	}
	l.controlsRevision, l.running, l.buckets, l.lanes, l.opensAt = e.Controls, e.Running, e.Buckets, e.Lanes, e.OpensAt
	l.unreleased, l.dependents, l.driftRevision = e.Ended, e.Dependents, e.Entered
	l.hadUnreleased = len(e.Ended) > 0
	l.keys, l.rounds, l.sorted, l.buildsAt, l.out.high = e.Keys, e.Rounds, e.Sorted, e.Builds, e.High
	for _, kind := range e.Asked {
		l.noteAsked(kind.Kind, kind.Out)
	}
	l.fillKeys()
	return l, nil
}

// fillKeys adds what extra leaves out: the queues in which only jobs without a fairness key wait.
func (l *Ledger) fillKeys() {
	fill := func(queue string) {
		if l.keys[queue] == nil {
			l.NoteKey(queue, "")
		}
	}
	for queue := range l.floors {
		fill(queue)
	}
	for queue := range l.lanes {
		fill(queue)
	}
}

// namedKeys returns the keys without the queues in which only jobs without a fairness key wait.
func (l *Ledger) namedKeys() map[string][]string {
	var named map[string][]string
	for queue, keys := range l.keys {
		if len(keys) > 1 || keys[0] != "" {
			if named == nil {
				named = map[string][]string{}
			}
			named[queue] = keys
		}
	}
	return named
}

// extra returns the JSON for the column more.
func (l *Ledger) extra() json.RawMessage {
	keys := l.namedKeys()
	if l.controlsRevision == 0 && len(l.lanes) == 0 && l.opensAt.IsZero() && len(l.unreleased) == 0 &&
		l.dependents == 0 && l.driftRevision == 0 && len(keys) == 0 && len(l.rounds) == 0 && len(l.sorted) == 0 &&
		l.buildsAt.IsZero() && len(l.out.high) == 0 {
		return json.RawMessage(noExtra)
	}
	return mustJSON(extra{
		Controls: l.controlsRevision, Running: l.running, Buckets: l.buckets, Lanes: l.lanes, OpensAt: l.opensAt,
		Ended: l.unreleased, Dependents: l.dependents, Entered: l.driftRevision, Keys: keys, Rounds: l.rounds,
		Sorted: l.sorted, Asked: kindCounts(l.asked), Builds: l.buildsAt, High: l.out.high,
	})
}

// Enter adds what the transaction changed. Counts of running attempts that were made under other controls are left out.
func (l *Ledger) Enter(d Delta) {
	if d.Empty() {
		return
	}
	l.changed = true
	if d.countedUnder != 0 && d.countedUnder != l.controlsRevision {
		d.running = nil
	}
	if !d.due.IsZero() && (l.due.IsZero() || d.due.Before(l.due)) {
		l.wakeClock = true
	}
	for queue := range d.typed {
		if !l.IsAsked(queue) {
			l.noteTyped(queue)
		}
	}
	d.typed = nil
	maps.DeleteFunc(d.asked, func(k Kind, _ int) bool { return !l.IsAsked(k.Queue) })
	l.counts.add(d.counts)
	l.followUps.add(d.followUps)
	if len(d.ended) > 0 && l.dependents == 0 {
		l.dependents = d.dependents
	}
}

// Controls returns the controls that are in force.
func (l *Ledger) Controls() *Controls { return l.controls }

// Revision returns the number of the version that was read.
func (l *Ledger) Revision() int64 { return l.revision }

// Drift returns what the ledger lacks of the rows that were counted in the same snapshot.
func (l *Ledger) Drift(counted Delta) Delta {
	return Delta{counts: l.missing(counted.counts), countedUnder: counted.countedUnder}
}

// AddDrift adds to the delta a drift that was counted against a revision of the ledger. A drift that was counted before
// the last one was entered contains that one, and is left out.
func (l *Ledger) AddDrift(d *Delta, drift Delta, revision int64) {
	if revision >= l.driftRevision && !drift.Empty() {
		d.add(drift)
		l.driftRevision = l.revision + 1
	}
}

// NoteSent notes that sent of a queue's best jobs have gone out when asked were wanted, the last of them with the rank
// last. NoteOut notes to which partitions they went.
func (l *Ledger) NoteSent(queue string, sent, asked int, last time.Time) {
	l.changed = true
	if sent < asked {
		delete(l.floors, queue)
	} else if last.After(l.floors[queue]) {
		l.floors[queue] = last
	}
	l.NoteStarts(queue, sent)
}

// RaiseDueFloor sets the instant before which no job is due; zero: no job will be due.
func (l *Ledger) RaiseDueFloor(at time.Time) {
	if !at.Equal(l.due) {
		l.due, l.changed = at, true
	}
}

// Close ends the step. It reports whether the row has to be written, and whether the function dispatch has to be woken.
func (l *Ledger) Close() (write, wakeClock bool) {
	l.noteOpening()
	if !l.changed {
		return false, l.wakeClock
	}
	l.out.tidy()
	l.tidyControls()
	l.tidyKeys()
	l.tidyKinds()
	l.tidyBuilds()
	if len(l.unreleased) > 0 && !l.hadUnreleased { // the function dispatch goes on where this step stops
		l.wakeClock = true
	}
	return true, l.wakeClock
}

// Row returns the ledger as it is to be written, after Close.
func (l *Ledger) Row() Row {
	row := Row{N: l.revision, InFlight: mustJSON(l.out.low), Floors: mustJSON(l.floors), More: l.extra(), At: l.At}
	if !l.due.IsZero() {
		row.DueFloor = &l.due
	}
	return row
}

// ReadyQueues returns the queues from which a job may go out if a worker has room. Their order is random, so that no
// queue always goes first.
func (l *Ledger) ReadyQueues() []string {
	queues := slices.Collect(maps.Keys(l.floors))
	for queue := range l.lanes {
		if _, some := l.floors[queue]; !some && l.HasReady(queue) {
			queues = append(queues, queue)
		}
	}
	if !l.controls.none() {
		queues = slices.DeleteFunc(queues, func(queue string) bool { return l.RoomOfQueue(queue) == 0 })
	}
	shuffle(queues)
	return queues
}

// HasReady reports whether a queue has a waiting job that no control of its type or owner holds back and whose
// type, as far as the ledger knows, a live worker runs.
func (l *Ledger) HasReady(queue string) bool {
	if _, some := l.floors[queue]; some {
		return true
	}
	for lane := range l.lanes[queue] {
		if l.roomUnder(queue, subjectsOf(lane)) > 0 {
			return true
		}
	}
	return false
}

// UsesLanes reports whether jobs of a queue are in lanes, or may be from now on.
func (l *Ledger) UsesLanes(queue string) bool {
	_, isSorted := l.sorted[queue]
	return l.controls.byJob || len(l.lanes[queue]) > 0 || isSorted
}

// floorsOf returns the ranks below which no job of a queue waits, by lane; the jobs outside of all lanes have the empty
// one.
func (l *Ledger) floorsOf(queue string) map[string]time.Time {
	floors := maps.Clone(l.lanes[queue])
	if floors == nil {
		floors = map[string]time.Time{}
	}
	if floor, some := l.floors[queue]; some {
		floors[""] = floor
	}
	return floors
}

// setFloor sets the rank below which no job of a lane waits. If waits is false, none waits at all.
func (l *Ledger) setFloor(queue, lane string, floor time.Time, waits bool) {
	floors, name := l.floors, queue
	if lane != "" {
		floors, name = l.lanes[queue], lane
	}
	before, waited := floors[name]
	l.changed = l.changed || waits != waited || !floor.Equal(before)
	if waits {
		floors[name] = floor
	} else {
		delete(floors, name)
	}
}

// Floor returns the rank below which no job of a queue waits outside of all lanes.
func (l *Ledger) Floor(queue string) time.Time { return l.floors[queue] }

// mustJSON encodes our own structs, which cannot fail.
func mustJSON(v any) json.RawMessage {
	body, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", v, err))
	}
	return body
}
