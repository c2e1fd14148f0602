package runjob

import (
	"slices"

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
	var touched []*partition // few
	for _, r := range records {
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
