package runjob

import (
	"github.com/IBM/sarama"

	"github.com/jobweaver/jobweaver/shared/kafkaevent"
)

// partition is one that this worker holds, for as long as it does.
type partition struct {
	*kafkaevent.Partition
	queue   string
	tracker OffsetTracker
}

// record is where an attempt came from.
type record struct {
	partition *partition
	offset    int64
}

// delivered is a record that was taken, in the order of its partition.
type delivered struct {
	record
	message *sarama.ConsumerMessage
}

// done says that records need nothing more, and lets what follows from that be committed.
func done(records []record) {
	touched := map[*partition]struct{}{}
	for _, r := range records {
		r.partition.tracker.Done(r.offset)
		touched[r.partition] = struct{}{}
	}
	for p := range touched {
		if next, ok := p.tracker.Committable(); ok {
			p.Mark(next)
		}
	}
}
