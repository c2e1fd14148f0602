package kafkaevent

import (
	"slices"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

// commitInterval is how often marks are committed at most. A process that is killed leaves the records of that time to
// the next member, which finds them done. Apache Kafka writes each commit into a log.
const commitInterval = time.Second

// groupHandler has the methods that sarama calls during one session. On a cooperative rebalance the session's context
// does not end and Setup does not run again: only the closed Messages() of a claim shows it.
type groupHandler struct {
	consumer *GroupConsumer
	hooks    Hooks
	marked   chan struct{} // there are marks to commit
	done     chan struct{}
	commits  sync.WaitGroup
}

// Setup runs between joining and the first claim.
func (h *groupHandler) Setup(s sarama.ConsumerGroupSession) error {
	h.consumer.ids.rewind(s)
	h.consumer.setJoined(true)
	h.commits.Go(func() { h.commitLoop(s) })
	return nil
}

// Cleanup runs after the last claim.
func (h *groupHandler) Cleanup(sarama.ConsumerGroupSession) error {
	h.consumer.setJoined(false)
	close(h.done)
	h.commits.Wait()
	return nil
}

// ConsumeClaim has one partition until it is revoked or the session ends. It always reads the messages of sarama, or it
// would not notice that Messages() is closed; instead, it pauses fetching.
func (h *groupHandler) ConsumeClaim(s sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	p := h.consumer.open(h, s, claim)
	if h.hooks.Assigned != nil {
		h.hooks.Assigned(p)
	}
	h.feed(s, p)
	h.consumer.close(p)
	if h.hooks.Revoked != nil {
		h.hooks.Revoked(p)
	}
	h.consumer.bury(p)
	h.consumer.commit(s) // no other code does so when a partition is revoked
	return nil
}

func (h *groupHandler) feed(s sarama.ConsumerGroupSession, p *Partition) {
	var batch []*sarama.ConsumerMessage
	// Messages() may take long to close while sarama tries to reach a broker.
	for {
		select {
		case m, ok := <-p.claim.Messages():
			if !ok {
				return
			}
			if batch == nil && p.claim.InitialOffset() < 0 {
				// Where the offset came from "oldest", a committed one may be higher (of a log that is
				// gone), and marks below it would be ignored.
				s.ResetOffset(p.claim.Topic(), p.ID, m.Offset, "")
				p.marked.Store(m.Offset)
			}
			batch = append(batch[:0], m)
			batch = drain(batch, p.claim.Messages())
			for _, m := range batch {
				m.Topic = p.Topic
			}
			h.consumer.put(p, batch)
		case <-s.Context().Done():
			return
		}
	}
}

// drain adds all records that have arrived under one lock.
func drain(batch []*sarama.ConsumerMessage, from <-chan *sarama.ConsumerMessage) []*sarama.ConsumerMessage {
	for len(batch) < 256 {
		select {
		case m, ok := <-from:
			if !ok {
				return batch
			}
			batch = append(batch, m)
		default:
			return batch
		}
	}
	return batch
}

// commitLoop sleeps until something is marked, then commits at most once an interval.
func (h *groupHandler) commitLoop(s sarama.ConsumerGroupSession) {
	for {
		select {
		case <-h.marked:
		case <-h.done:
			return
		}
		timer := time.NewTimer(commitInterval)
		select {
		case <-timer.C:
		case <-h.done:
			timer.Stop()
			return
		}
		h.consumer.commit(s)
	}
}

func (c *GroupConsumer) open(
	h *groupHandler, s sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim,
) *Partition {
	p := &Partition{Topic: c.cfg.bareName(claim.Topic()), ID: claim.Partition(), claim: claim, session: s}
	p.marked.Store(max(claim.InitialOffset(), 0))
	p.mark = func(next int64) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if p.dead {
			return
		}
		s.MarkOffset(claim.Topic(), p.ID, next, "")
		p.marked.Store(max(next, p.marked.Load()))
		signal(h.marked)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.parts = append(c.parts, p)
	if c.paused && c.current != nil {
		c.current.Pause(map[string][]int32{claim.Topic(): {p.ID}})
	}
	return p
}

// close drops the records that were not taken; the partition's next member receives them.
func (c *GroupConsumer) close(p *Partition) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending.records -= len(p.pending)
	c.pending.bytes -= p.bytes
	p.pending, p.bytes = nil, 0
	c.parts = slices.DeleteFunc(c.parts, func(q *Partition) bool { return q == p })
	c.resumeFetching()
}

// bury makes late marks ineffective: the partition may be assigned again within the session, at another offset.
func (c *GroupConsumer) bury(p *Partition) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p.dead = true
}

func (c *GroupConsumer) put(p *Partition, batch []*sarama.ConsumerMessage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	bytes := 0
	for _, m := range batch {
		bytes += weight(m)
	}
	p.pending = append(p.pending, batch...)
	p.bytes += bytes
	c.pending.records += len(batch)
	c.pending.bytes += bytes
	c.pauseFetching()
	signal(c.ready)
}

// pauseFetching stops fetching from all partitions when enough records are pending. If it paused only a full partition,
// that would be fetched again only when the long poll for the others, which may be empty, has ended.
func (c *GroupConsumer) pauseFetching() {
	full := c.pending.records >= maxPendingRecords || c.pending.bytes >= maxPendingBytes
	if full && !c.paused && c.current != nil {
		c.paused = true
		c.current.PauseAll()
	}
}

// resumeFetching continues fetching once half of the pending records are taken.
func (c *GroupConsumer) resumeFetching() {
	enough := c.pending.records > maxPendingRecords/2 || c.pending.bytes > maxPendingBytes/2
	if !enough && c.paused && c.current != nil {
		c.paused = false
		c.current.ResumeAll()
	}
}

func (c *GroupConsumer) setCurrent(group sarama.ConsumerGroup) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.current, c.paused = group, false
}

func (c *GroupConsumer) setJoined(joined bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.joined = joined
}

// signal fills a channel of one place: the receiver wakes once, however often it was signalled.
func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}
