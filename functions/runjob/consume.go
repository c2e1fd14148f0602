package runjob

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"github.com/jobweaver/jobweaver/functions/runjob/offsets"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/kafkaevent"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// consumers has the worker's group memberships: one topic and one consumer group for each queue.
type consumers struct {
	all     []*queueConsumer
	wake    func() // called when there may be records to take
	changed func() // called when partitions have come or gone

	turn int // the queue that is read first; used by take only

	mu       sync.Mutex
	draining bool
	turned   chan struct{} // closed when draining changes
}

// delivered is a record or one item of its event, in the order of the partition.
type delivered struct {
	offsets.Record
	message *sarama.ConsumerMessage
	of      jobevent.Item // the item of the record's event
}

type queueConsumer struct {
	*kafkaevent.GroupConsumer
	queue string

	mu         sync.Mutex
	partitions map[*kafkaevent.Partition]*offsets.Partition
}

func newConsumers(cfg Config, meter telemetry.Meter, wake, changed func()) (*consumers, error) {
	c := &consumers{wake: wake, changed: changed, turned: make(chan struct{})}
	for _, queue := range cfg.Queues {
		group, err := kafkaevent.NewGroupConsumer(cfg.Kafka, "jobweaver-runjob-"+queue, []string{jobevent.RunTopic(queue)})
		if err != nil {
			return nil, err
		}
		group.Watch = kafkaevent.Watch{Committed: meter.Committed, Disconnected: meter.Disconnected}
		c.all = append(c.all, &queueConsumer{
			GroupConsumer: group, queue: queue, partitions: map[*kafkaevent.Partition]*offsets.Partition{},
		})
	}
	return c, nil
}

// run keeps the memberships until ctx ends. A revoke does not wait for handlers: the offsets of done records are marked
// already, and the rows of the other attempts keep redelivered records from starting them again.
func (c *consumers) run(ctx context.Context) {
	var group sync.WaitGroup
	for _, q := range c.all {
		group.Go(func() { c.attend(ctx, q) })
		group.Go(func() {
			for {
				select {
				case <-q.Ready():
					c.wake()
				case <-ctx.Done():
					return
				}
			}
		})
	}
	group.Wait()
}

// attend keeps one membership until ctx ends, except while the worker drains: other members then get its partitions,
// and with them the attempts that it has not claimed. A new worker receives them if there is no other member.
func (c *consumers) attend(ctx context.Context, q *queueConsumer) {
	for ctx.Err() == nil {
		draining, turned := c.isDraining()
		if draining {
			select {
			case <-turned:
			case <-ctx.Done():
			}
			continue
		}
		member, leave := context.WithCancel(ctx)
		go func() {
			select {
			case <-turned:
				leave()
			case <-member.Done():
			}
		}()
		_ = q.Run(member, kafkaevent.Hooks{ // returns no error: it reconnects
			Assigned: func(p *kafkaevent.Partition) { q.assign(p); c.changed() },
			Revoked:  func(p *kafkaevent.Partition) { q.revoke(p); c.changed() },
		})
		leave()
	}
}

func (c *consumers) isDraining() (draining bool, turned <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.draining, c.turned
}

// drain leaves the groups, or joins them again. It reports whether that is a change.
func (c *consumers) drain(draining bool) (changed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.draining == draining {
		return false
	}
	c.draining = draining
	close(c.turned)
	c.turned = make(chan struct{})
	return true
}

func (q *queueConsumer) assign(p *kafkaevent.Partition) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.partitions[p] = &offsets.Partition{Partition: p, Queue: q.queue}
}

func (q *queueConsumer) revoke(p *kafkaevent.Partition) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.partitions, p)
}

// take returns up to limit records that have arrived. Queues take turns at being first.
func (c *consumers) take(limit int) []delivered {
	var batch []delivered
	c.turn++
	for i := range c.all {
		q := c.all[(c.turn+i)%len(c.all)]
		for _, records := range q.Take(limit-len(batch), maxTakeBytes/len(c.all)) {
			q.mu.Lock()
			p := q.partitions[records.Partition]
			q.mu.Unlock()
			if p == nil {
				continue // revoked since: the next holder receives them
			}
			now := time.Now()
			for _, m := range records.Messages {
				p.Tracker.DeliverAt(m.Offset, now)
				batch = append(batch, delivered{Record: offsets.Record{Partition: p, Offset: m.Offset}, message: m})
			}
		}
	}
	return batch
}

// holds reports whether this worker still has a partition.
func (c *consumers) holds(p *offsets.Partition) bool {
	return slices.ContainsFunc(c.all, func(q *queueConsumer) bool {
		q.mu.Lock()
		defer q.mu.Unlock()
		return q.partitions[p.Partition] == p
	})
}

// joined reports whether this worker is a member of every queue's group, or has left them to drain.
func (c *consumers) joined() bool {
	draining, _ := c.isDraining()
	return draining || !slices.ContainsFunc(c.all, func(q *queueConsumer) bool { return !q.Joined() })
}

// held lists the partitions of each queue.
func (c *consumers) held() map[string][]int32 {
	byQueue := make(map[string][]int32, len(c.all))
	for _, q := range c.all {
		ids := []int32{}
		for _, p := range q.each() {
			ids = append(ids, p.ID)
		}
		slices.Sort(ids)
		byQueue[q.queue] = ids
	}
	return byQueue
}

func (q *queueConsumer) each() []*offsets.Partition {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := make([]*offsets.Partition, 0, len(q.partitions))
	for _, p := range q.partitions {
		all = append(all, p)
	}
	return all
}

// stuck returns the partitions with more than limit records that are done and cannot be committed.
func (c *consumers) stuck(limit int) []*offsets.Partition {
	var stuck []*offsets.Partition
	for _, q := range c.all {
		for _, p := range q.each() {
			if p.Tracker.Gap() > limit {
				stuck = append(stuck, p)
			}
		}
	}
	return stuck
}

// figures returns how far each partition is committed.
func (c *consumers) figures() []telemetry.Partition {
	var figures []telemetry.Partition
	for _, q := range c.all {
		for _, p := range q.each() {
			figures = append(figures, telemetry.Partition{Topic: p.Topic, ID: p.ID, Lag: p.Lag(), Gap: p.Tracker.Gap()})
		}
	}
	return figures
}
