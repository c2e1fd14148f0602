package runjob

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"github.com/jobweaver/jobweaver/functions/runjob/offsets"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/kafkaevent"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// consumers has the worker's group memberships: one topic and one consumer group for each queue. So the others go on
// undisturbed when it begins or ceases to serve a created queue.
type consumers struct {
	cfg     Config
	meter   telemetry.Meter
	wake    func() // called when there may be records to take
	changed func() // called when partitions have come or gone

	turn int // the queue that is read first; used by take only

	mu       sync.Mutex
	all      []*queueConsumer // replaced, never changed
	draining bool
	known    string               // the digest of the created queues; empty: this worker follows none
	begin    func(*queueConsumer) // nil: run has not begun, or ends
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
	own   bool // of the setting QUEUES

	// The mutex of consumers guards these.
	unwanted bool          // it leaves the group, and is gone
	turned   chan struct{} // closed when draining or unwanted changes

	mu         sync.Mutex
	partitions map[*kafkaevent.Partition]*offsets.Partition
}

func newConsumers(cfg Config, meter telemetry.Meter, wake, changed func()) (*consumers, error) {
	c := &consumers{cfg: cfg, meter: meter, wake: wake, changed: changed}
	if len(cfg.Follow.Names) > 0 {
		c.known = jobevent.QueuesDigest(nil)
	}
	for _, queue := range cfg.Queues {
		q, err := c.newQueue(queue)
		if err != nil {
			return nil, err
		}
		q.own = true
		c.all = append(c.all, q)
	}
	return c, nil
}

func (c *consumers) newQueue(queue string) (*queueConsumer, error) {
	group, err := kafkaevent.NewGroupConsumer(c.cfg.Kafka, jobevent.RunGroup(queue), []string{jobevent.RunTopic(queue)})
	if err != nil {
		return nil, err
	}
	group.Watch = kafkaevent.Watch{Committed: c.meter.Committed, Disconnected: c.meter.Disconnected}
	return &queueConsumer{
		GroupConsumer: group, queue: queue, turned: make(chan struct{}),
		partitions: map[*kafkaevent.Partition]*offsets.Partition{},
	}, nil
}

// run keeps the memberships until ctx ends. A revoke does not wait for handlers: the offsets of done records are marked
// already, and the database keeps redelivered records from starting the other attempts again.
func (c *consumers) run(ctx context.Context) {
	var group sync.WaitGroup
	c.mu.Lock()
	c.begin = func(q *queueConsumer) { group.Go(func() { c.attend(ctx, q) }) }
	for _, q := range c.all {
		c.begin(q)
	}
	c.mu.Unlock()
	<-ctx.Done()
	c.mu.Lock()
	c.begin = nil
	c.mu.Unlock()
	group.Wait()
}

// attend keeps one membership until ctx ends or the queue is unwanted, except while the worker drains: other members
// then get its partitions, and with them the attempts that it has not claimed. A new worker receives them if there is
// no other member.
func (c *consumers) attend(ctx context.Context, q *queueConsumer) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	var waking sync.WaitGroup
	defer waking.Wait()
	defer end()
	waking.Go(func() {
		for {
			select {
			case <-q.Ready():
				c.wake()
			case <-ctx.Done():
				return
			}
		}
	})
	for ctx.Err() == nil {
		draining, gone, turned := c.look(q)
		if gone {
			c.changed()
			return
		}
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

// look reports whether the worker drains, and whether the queue is unwanted, which then is no longer listed. turned is
// closed when one of the two changes.
func (c *consumers) look(q *queueConsumer) (draining, gone bool, turned <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if q.unwanted {
		c.all = slices.DeleteFunc(slices.Clone(c.all), func(other *queueConsumer) bool { return other == q })
	}
	return c.draining, q.unwanted, q.turned
}

// list returns all memberships.
func (c *consumers) list() []*queueConsumer {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all
}

// queues returns the queues that the worker serves. A queue that it leaves is one of them until it has left.
func (c *consumers) queues() []string {
	all := c.list()
	names := make([]string, len(all))
	for i, q := range all {
		names[i] = q.queue
	}
	return names
}

// follows returns the digest of the created queues that this worker knows; empty: it follows none.
func (c *consumers) follows() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known
}

// follow joins the groups of the created queues that this worker serves, and leaves those of all other queues except
// its own. It reports whether that is a change.
func (c *consumers) follow(queues []jobevent.CreatedQueue, digest string) (changed bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == "" || c.known == digest {
		return false, nil
	}
	wanted := map[string]bool{}
	for _, queue := range queues {
		wanted[queue.Name] = queue.Workers == cmp.Or(c.cfg.As, Name) && c.cfg.Follow.covers(queue.Name)
	}
	all := slices.Clone(c.all)
	for _, q := range all {
		if unwanted := !q.own && !wanted[q.queue]; unwanted != q.unwanted {
			q.unwanted, changed = unwanted, true
			q.turn()
		}
		delete(wanted, q.queue)
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if !wanted[name] {
			continue
		}
		q, err := c.newQueue(name)
		if err != nil {
			return changed, err
		}
		all, changed = append(all, q), true
		if c.begin != nil {
			c.begin(q)
		}
	}
	c.all, c.known = all, digest
	return changed, nil
}

// turn has attend look again. The caller holds the mutex of consumers.
func (q *queueConsumer) turn() {
	close(q.turned)
	q.turned = make(chan struct{})
}

// drain leaves the groups, or joins them again. It reports whether that is a change.
func (c *consumers) drain(draining bool) (changed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.draining == draining {
		return false
	}
	c.draining = draining
	for _, q := range c.all {
		q.turn()
	}
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
	all := c.list()
	c.turn++
	for i := range all {
		q := all[(c.turn+i)%len(all)]
		for _, records := range q.Take(limit-len(batch), maxTakeBytes/len(all)) {
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
	return slices.ContainsFunc(c.list(), func(q *queueConsumer) bool {
		q.mu.Lock()
		defer q.mu.Unlock()
		return q.partitions[p.Partition] == p
	})
}

// joined reports whether this worker is a member of the groups of its own queues, or has left them to drain. It is
// ready while it joins that of a created queue.
func (c *consumers) joined() bool {
	c.mu.Lock()
	draining, all := c.draining, c.all
	c.mu.Unlock()
	return draining || !slices.ContainsFunc(all, func(q *queueConsumer) bool { return q.own && !q.Joined() })
}

// held lists the partitions of each queue.
func (c *consumers) held() map[string][]int32 {
	all := c.list()
	byQueue := make(map[string][]int32, len(all))
	for _, q := range all {
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
	for _, q := range c.list() {
		for _, p := range q.each() {
			if p.Tracker.Gap() > limit {
				stuck = append(stuck, p)
			}
		}
	}
	return stuck
}

// figures returns how far each partition is read and committed.
func (c *consumers) figures() []telemetry.Partition {
	var figures []telemetry.Partition
	for _, q := range c.list() {
		for _, p := range q.each() {
			figures = append(figures, telemetry.Partition{
				Topic: p.Topic, ID: p.ID, Lag: p.Lag(), Gap: p.Tracker.Gap(),
				Next: max(p.Tracker.Next(), p.Next()), End: p.End(),
			})
		}
	}
	return figures
}
