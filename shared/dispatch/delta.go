package dispatch

import (
	"slices"

	"github.com/google/uuid"
)

// Delta is what one transaction changed, or what a count found, until it is entered into the ledger.
type Delta struct {
	counts
	followUps
	// countedUnder is the revision of the controls for which running was counted: under another revision other job types
	// and owners are counted. Zero: running has changes, of all job types and owners.
	countedUnder int64
	dependents   int64 // rows of dependencies that were seen: a ledger must not say that there are none
}

// NewDelta returns an empty delta.
func NewDelta() Delta { return Delta{counts: newCounts()} }

// SetRunning sets how many attempts are out of each job type and owner under the controls of a revision.
func (d *Delta) SetRunning(running map[Subject]int, revision int64) {
	d.running, d.countedUnder = running, revision
}

// SetAsked sets how many attempts are out of each kind in the queues that pull workers serve.
func (d *Delta) SetAsked(out map[Kind]int) { d.asked = out }

// NoteOverdue notes jobs that ended long ago and still have dependents, and how many rows of dependencies there are at
// least.
func (d *Delta) NoteOverdue(ended []uuid.UUID, dependents int) {
	d.ended = append(d.ended, slices.Compact(ended)...)
	d.dependents = int64(dependents)
}

func (d *Delta) add(other Delta) {
	d.counts.add(other.counts)
	d.followUps.add(other.followUps)
	d.countedUnder = max(d.countedUnder, other.countedUnder)
}

// ChangesCounts reports whether more or fewer attempts are out.
func (d *Delta) ChangesCounts() bool { return d.out.tidy() || tidyRunning(d.running) > 0 }

// Empty reports whether there is nothing to enter.
func (d *Delta) Empty() bool {
	return !d.ChangesCounts() && len(d.floors) == 0 && len(d.lanes) == 0 && len(d.keys) == 0 &&
		len(d.typed) == 0 && len(d.asked) == 0 && d.due.IsZero() && d.none()
}
