// Package offsets tracks which records of a partition are done, in any order, and up to which offset it may be
// committed.
package offsets

import (
	"slices"
	"sync"

	"github.com/jobweaver/jobweaver/shared/kafkaevent"
)

// Partition is a partition while this worker holds it.
// Why a long attempt counts as done: docs/decisions/workers.md#a-long-attempt-does-not-hold-back-its-partition
type Partition struct {
	*kafkaevent.Partition
	Queue   string
	Tracker Tracker
}

// Record is the origin of an attempt: a record, or an item of its event.
type Record struct {
	Partition *Partition
	Offset    int64
	Items     *ItemTracker // nil: the record has one attempt at most
	Item      int
}

// ItemTracker tracks which items of a record's event are done.
type ItemTracker struct {
	mu   sync.Mutex
	done []bool
	left int
}

// NewItemTracker returns a tracker of n items.
func NewItemTracker(items int) *ItemTracker {
	return &ItemTracker{done: make([]bool, items), left: items}
}

// Done notes that an item is done, and reports whether all are.
func (t *ItemTracker) Done(item int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.done[item] {
		t.done[item] = true
		t.left--
	}
	return t.left == 0
}

// Done notes that records are done, and marks the offsets that may be committed now.
func Done(records []Record) {
	var touched []*Partition // few
	for _, r := range records {
		if r.Items != nil && !r.Items.Done(r.Item) {
			continue
		}
		r.Partition.Tracker.Done(r.Offset)
		if !slices.Contains(touched, r.Partition) {
			touched = append(touched, r.Partition)
		}
	}
	for _, p := range touched {
		if next, ok := p.Tracker.Committable(); ok {
			p.Mark(next)
		}
	}
}
