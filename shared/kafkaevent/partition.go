package kafkaevent

import (
	"sync/atomic"

	"github.com/IBM/sarama"
)

// Partition is a partition while this member has it. The same partition, revoked and assigned again, is another
// Partition.
type Partition struct {
	Topic string // the name without that of the installation
	ID    int32

	claim   sarama.ConsumerGroupClaim
	session sarama.ConsumerGroupSession
	mark    func(next int64)
	marked  atomic.Int64 // the highest offset marked; the claim's first until then

	// Guarded by the consumer's mutex.
	pending []*sarama.ConsumerMessage // fetched, not yet taken
	bytes   int
	dead    bool // revoked, or its topic was replaced: marks have no effect
}

// Mark notes that all records below next are done (next = offset + 1 of the last of them). The mark is committed soon,
// at the latest when the partition is revoked. A mark of a lost partition has no effect.
func (p *Partition) Mark(next int64) { p.mark(next) }

// Lag returns how many offsets lie between the mark and the end of the partition.
func (p *Partition) Lag() int64 {
	return max(p.End()-p.Next(), 0)
}

// Next returns the mark: the offset of the first record that is not known to be done.
func (p *Partition) Next() int64 { return p.marked.Load() }

// End returns the offset that the next record of the partition will have; 0 before the first answer of the broker.
func (p *Partition) End() int64 { return p.claim.HighWaterMarkOffset() }

// Records has the records of one partition that Take returned, in order.
type Records struct {
	Partition *Partition
	Messages  []*sarama.ConsumerMessage
}

// take returns up to n records and about maxBytes, but at least one if there is one.
func (p *Partition) take(n, maxBytes int) (taken []*sarama.ConsumerMessage, bytes int) {
	i := 0
	for i < len(p.pending) && i < n && (i == 0 || bytes < maxBytes) {
		bytes += weight(p.pending[i])
		i++
	}
	taken, p.pending = p.pending[:i:i], p.pending[i:]
	p.bytes -= bytes
	if len(p.pending) == 0 {
		p.pending = nil // or its array would be kept
	}
	return taken, bytes
}

// weight returns about how many bytes of memory a record takes.
func weight(m *sarama.ConsumerMessage) int {
	const frame = 256
	n := frame + len(m.Key) + len(m.Value)
	for _, h := range m.Headers {
		n += frame/4 + len(h.Key) + len(h.Value)
	}
	return n
}
