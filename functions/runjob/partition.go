package runjob

import (
	"slices"
	"sync"

	"github.com/IBM/sarama"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/kafkaevent"
)

// partition is one that this worker holds, for as long as it does.
type partition struct {
	*kafkaevent.Partition
	queue   string
	tracker OffsetTracker
}

// record is where an attempt came from: a record, or an item of the event in one.
type record struct {
	partition *partition
	offset    int64
	items     *itemTracker // nil: the record has one attempt at most
	item      int
}

// delivered is a record, or an item of the event in one, in the order of its partition.
type delivered struct {
	record
	message *sarama.ConsumerMessage
	of      jobevent.Item // what of the record
}

// itemTracker knows which items of a record's event are done.
type itemTracker struct {
	mu   sync.Mutex
	done []bool
	left int
}

func newItemTracker(items int) *itemTracker {
	return &itemTracker{done: make([]bool, items), left: items}
}

// Done notes that an item needs nothing more, and returns whether none does.
func (t *itemTracker) Done(item int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.done[item] {
		t.done[item] = true
		t.left--
	}
	return t.left == 0
}

// done says that records need nothing more, and lets what follows from that be committed.
func done(records []record) {
	var touched []*partition // few
	for _, r := range records {
		if r.items != nil && !r.items.Done(r.item) {
			continue
		}
		r.partition.tracker.Done(r.offset)
		if !slices.Contains(touched, r.partition) {
			touched = append(touched, r.partition)
		}
	}
	for _, p := range touched {
		if next, ok := p.tracker.Committable(); ok {
			p.Mark(next)
		}
	}
}
