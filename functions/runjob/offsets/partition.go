// Package offsets knows which records of a partition are done, in any order, and how far it may be committed.
package offsets

import (
	"slices"
	"sync"

	"github.com/jobweaver/jobweaver/shared/kafkaevent"
)

// Partition is one that this worker holds, for as long as it does.
type Partition struct {
	*kafkaevent.Partition
	Queue   string
	Tracker Tracker
}

// Record is where an attempt came from: a record, or an item of the event in one.
type Record struct {
	Partition *Partition
	Offset    int64
	Items     *ItemTracker // nil: the record has one attempt at most
	Item      int
}

// ItemTracker knows which items of a record's event are done.
type ItemTracker struct {
	mu   sync.Mutex
	done []bool
	left int
}

// NewItemTracker makes one for so many items.
func NewItemTracker(items int) *ItemTracker {
	return &ItemTracker{done: make([]bool, items), left: items}
}

// Done notes that an item needs nothing more, and returns whether none does.
func (t *ItemTracker) Done(item int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.done[item] {
		t.done[item] = true
		t.left--
	}
	return t.left == 0
}

// Done notes that records need nothing more, and marks what may be committed now.
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
