package dispatch

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// MaxReleases bounds the jobs that one transaction releases, so that the ledger is not locked while ten thousand are
// released. The function dispatch releases the rest.
const MaxReleases = 1000

// NextEnded returns the ended jobs whose dependents the transaction must release now. left is how many jobs it may
// still release. NextEnded returns none when the transaction is done with them. The first call also returns ended jobs
// of whose dependents an earlier transaction released only a part.
func (l *Ledger) NextEnded(isFirst bool, left int) []uuid.UUID {
	ended := l.ended
	l.ended = nil
	switch {
	case l.dependents <= 0, len(ended) == 0 && !(isFirst && len(l.unreleased) > 0):
		return nil
	case left <= 0:
		l.unreleased = append(l.unreleased, ended...)
		return nil
	}
	return slices.Concat(ended, l.unreleased)
}

// NoteReleased notes which ended jobs still have dependents after a step that looked at some of these. These include
// dependents that another transaction has locked; the next step looks at them again.
func (l *Ledger) NoteReleased(looked int, unreleased []uuid.UUID) {
	l.unreleased = unreleased
	l.changed = l.changed || looked > 0 || len(unreleased) > 0
}

// NoteDependencies notes that there are n more rows of dependencies, or fewer if n is negative.
func (l *Ledger) NoteDependencies(n int64) {
	l.dependents += n
	l.changed = l.changed || n != 0
}

// NextTurns returns the ordering keys whose next job may have the turn: none when all have been returned.
func (l *Ledger) NextTurns() map[OrderKey]bool {
	turns := l.turns
	l.turns = nil
	return turns
}

// NoteReady notes that a job which was blocked waits for room now.
func (l *Ledger) NoteReady(queue, lane, key string, rank time.Time) {
	l.NoteWaiting(queue, lane, key, rank)
	l.changed = true
}

// NoteUnseen notes a job outside of all lanes that waits, of which a picker did not know, and whether there is still
// room for it.
func (l *Ledger) NoteUnseen(queue, key string, rank time.Time, hasRoom bool) {
	l.NoteReady(queue, "", key, rank)
	l.cutShort = l.cutShort || hasRoom
}

// Dependent is a job that runs after another one, which has ended.
type Dependent struct {
	AfterID     uuid.UUID
	JobID       uuid.UUID
	EndedAs     string
	Status      string
	BlockedBy   *string
	WaitsFor    *int32 // how many jobs it waits for; nil: it has ended, or it runs although one of them failed
	Condition   string // how the other job has to end: a jobstate.Condition
	Queue       string
	Rank        time.Time
	Lane        *string
	FairnessKey string
}

// Verb returns what the other job had to do.
func (d *Dependent) Verb() string {
	if jobstate.Condition(d.Condition) == jobstate.WhenFailed {
		return "fail"
	}
	return "complete"
}

// Releases sorts out what becomes of dependents.
type Releases struct {
	Failed map[uuid.UUID]Dependent // jobs that cannot run, each with the dependency that failed
	fewer  map[uuid.UUID]int32
}

// NewReleases returns empty Releases.
func NewReleases() *Releases {
	return &Releases{Failed: map[uuid.UUID]Dependent{}, fewer: map[uuid.UUID]int32{}}
}

// Add takes a dependent, once for each of its dependencies.
func (r *Releases) Add(d Dependent) {
	switch {
	case d.WaitsFor == nil:
	case !jobstate.Condition(d.Condition).Met(jobstate.Status(d.EndedAs)):
		r.Failed[d.JobID] = d
	default:
		r.fewer[d.JobID]++
	}
}

// Take returns the number of jobs for which a dependent no longer waits, and whether nothing blocks it any more. It is
// zero for a job that cannot run, that does not wait, or that was taken before.
func (r *Releases) Take(d Dependent) (fewer int32, ready bool) {
	if _, fails := r.Failed[d.JobID]; fails {
		return 0, false
	}
	fewer = r.fewer[d.JobID]
	delete(r.fewer, d.JobID)
	ready = fewer > 0 && *d.WaitsFor == fewer && d.BlockedBy != nil && *d.BlockedBy == ByDependency &&
		d.Status == string(jobstate.Pending)
	return fewer, ready
}
