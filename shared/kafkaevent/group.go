package kafkaevent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"github.com/jobweaver/jobweaver/shared/retry"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

const (
	// The bounds of the records that a consumer has fetched and not returned yet. A fetch under way comes on top
	// (Fetch.MaxBytes).
	maxPendingRecords = 10_000
	maxPendingBytes   = 16 << 20

	// leaveTimeout is how long Run may take after its context has ended: a rebalance may wait for another member, and a
	// broker may be unavailable.
	leaveTimeout = 5 * time.Second

	retryAtLeast = 200 * time.Millisecond
	retryAtMost  = 2 * time.Second
)

// GroupConsumer holds partitions of its topics as a member of a consumer group. Its user takes records when there is
// room for them (Take), marks done ones (Partition.Mark), and has functions that are called when partitions are
// assigned and revoked (Hooks). Marks are committed a moment later, and when a partition is revoked.
//
//	for {
//		got := c.Take(room, bytes)
//		if len(got) == 0 {
//			select {
//			case <-c.Ready():
//			case <-ctx.Done(): …
//			}
//			continue
//		}
//		…
//	}
//
// Except for a bounded number, records that are not taken stay in Kafka. Heartbeats go on whatever the user does. To
// drain: stop taking, finish, mark, and only then end Run's context; it commits and leaves the group within some
// seconds.
type GroupConsumer struct {
	Watch Watch // set before Run

	cfg    Config
	group  string // at the brokers
	topics []string
	ready  chan struct{}

	mu      sync.Mutex
	parts   []*Partition
	turn    int // whose turn it is in Take
	joined  bool
	current sarama.ConsumerGroup // nil while not connected
	paused  bool                 // fetching, because enough is pending
	pending struct{ records, bytes int }

	ids *topicIDs // only Run's goroutines

	trouble telemetry.Trouble
}

// Watch has functions for metrics; nil ones are not called.
type Watch struct {
	Committed    func(took time.Duration)
	Disconnected func()
}

// Hooks are called when partitions are assigned and revoked: one after another for the same partition, concurrently for
// different ones.
type Hooks struct {
	// Assigned is called before a partition's first record can be taken.
	Assigned func(*Partition)
	// Revoked is called when no further record of a partition can be taken. Marks made before it returns are committed.
	// Other members wait for it at most a minute, after which this member loses all its partitions.
	Revoked func(*Partition)
}

// NewGroupConsumer checks the configuration; nothing connects before Run.
func NewGroupConsumer(cfg Config, group string, topics []string) (*GroupConsumer, error) {
	cfg, err := cfg.checked()
	if err != nil {
		return nil, err
	}
	return &GroupConsumer{
		cfg: cfg, group: cfg.AtBrokers(group), topics: slices.Clone(topics),
		ready: make(chan struct{}, 1),
		ids:   newTopicIDs(),
		// A check of the topics that succeeds ends it, if nothing else has failed since the check before.
		trouble: telemetry.Trouble{What: "consume", Quiet: watchInterval},
	}, nil
}

// Run keeps the membership until ctx ends, then commits and leaves. It reconnects and creates missing topics as often
// as needed; a failed call is logged and repeated.
func (c *GroupConsumer) Run(ctx context.Context, hooks Hooks) error {
	wait := retry.Backoff(retryAtLeast, retryAtMost)
	for ctx.Err() == nil {
		began := time.Now()
		err := c.connect(ctx, hooks)
		if ctx.Err() != nil {
			return nil
		}
		if c.Watch.Disconnected != nil {
			c.Watch.Disconnected()
		}
		c.trouble.Note(ctx, cmp.Or(err, errEnded), "group", c.group)
		if time.Since(began) > 10*retryAtMost {
			wait.Reset()
		}
		if !retry.Pause(ctx, wait.NextBackOff()) {
			return nil
		}
	}
	return nil
}

var errEnded = errors.New("the membership has ended")

// connect joins the group and stays in it, through as many sessions as it takes, until an error.
func (c *GroupConsumer) connect(ctx context.Context, hooks Hooks) error {
	if err := CreateTopics(ctx, c.cfg, ourTopics(c.topics)); err != nil {
		return err
	}
	client, err := openGroupClient(c.cfg)
	if err != nil {
		return err
	}
	defer client.close()
	finished, finish := context.WithCancel(context.Background())
	defer finish()
	defer context.AfterFunc(ctx, func() {
		if retry.Pause(finished, leaveTimeout) {
			client.lines.cut()
		}
	})()
	group, err := sarama.NewConsumerGroupFromClient(c.group, client)
	if err != nil {
		return fmt.Errorf("join group %s: %w", c.group, err)
	}
	c.setCurrent(group)
	watch := &topicWatch{consumer: c, client: client.Client, kick: make(chan struct{}, 1)}
	var background sync.WaitGroup
	background.Go(func() { watch.logErrors(ctx, group.Errors()) })
	defer background.Wait()
	defer func() { _ = group.Close() }() // it leaves the group; when that fails, the session times out
	defer c.setCurrent(nil)

	for ctx.Err() == nil {
		began := time.Now()
		if err := c.session(ctx, group, watch, hooks); err != nil {
			return err
		}
		if time.Since(began) < retryAtMost {
			retry.Pause(ctx, retryAtLeast) // the next session may end as soon, for the same reason
		}
	}
	return nil
}

// session is one call of Consume: from joining until the broker, the watch or ctx ends it.
// Cooperative rebalances happen within it.
func (c *GroupConsumer) session(
	ctx context.Context, group sarama.ConsumerGroup, watch *topicWatch, hooks Hooks,
) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	if err := watch.check(ctx); err != nil && !errors.Is(err, errRecreated) {
		return err
	}
	var background sync.WaitGroup
	defer background.Wait()
	defer end(nil)
	background.Go(func() { end(watch.run(ctx)) })

	h := &groupHandler{consumer: c, hooks: hooks, marked: make(chan struct{}, 1), done: make(chan struct{})}
	if err := group.Consume(ctx, c.cfg.ownNames(c.topics), h); err != nil && ctx.Err() == nil {
		return fmt.Errorf("consume in group %s: %w", c.group, err)
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, errRecreated) {
		return cause
	}
	return nil
}

// Ready is signalled when there may be something to take.
func (c *GroupConsumer) Ready() <-chan struct{} { return c.ready }

// Take returns the records that have arrived, up to limit and about maxBytes, without waiting. Partitions take turns at
// being first.
func (c *GroupConsumer) Take(limit, maxBytes int) []Records {
	c.mu.Lock()
	defer c.mu.Unlock()
	var got []Records
	for i := range c.parts {
		if limit <= 0 || maxBytes <= 0 {
			break
		}
		p := c.parts[(c.turn+i)%len(c.parts)]
		messages, bytes := p.take(limit, maxBytes)
		if len(messages) == 0 {
			continue
		}
		got = append(got, Records{Partition: p, Messages: messages})
		limit -= len(messages)
		maxBytes -= bytes
		c.pending.records -= len(messages)
		c.pending.bytes -= bytes
	}
	c.turn++
	c.resumeFetching()
	return got
}

// Joined reports whether the group counts this consumer among its members. A member may hold no
// partition when there are more members than partitions.
func (c *GroupConsumer) Joined() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.joined
}

// Partitions returns the partitions that this member has now.
func (c *GroupConsumer) Partitions() []*Partition {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.parts)
}

// Figures returns the partitions that this member has now, with the lag of each.
func (c *GroupConsumer) Figures() []telemetry.Partition {
	parts := c.Partitions()
	figures := make([]telemetry.Partition, len(parts))
	for i, p := range parts {
		figures[i] = telemetry.Partition{
			Topic: p.Topic, ID: p.ID, Lag: p.Lag(), Next: p.Next(), End: p.End(),
		}
	}
	return figures
}

// commit commits the marks.
func (c *GroupConsumer) commit(s sarama.ConsumerGroupSession) {
	began := time.Now()
	s.Commit()
	if c.Watch.Committed != nil {
		c.Watch.Committed(time.Since(began))
	}
}

// held returns the records of partitions that this member still has.
func (c *GroupConsumer) held(batch []Records) []Records {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(batch, func(r Records) bool { return !slices.Contains(c.parts, r.Partition) })
}
