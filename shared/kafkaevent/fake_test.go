package kafkaevent

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/twmb/franz-go/pkg/kfake"
	"go.uber.org/goleak"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

func TestMain(m *testing.M) {
	// The circuit breaker of a closed sarama producer sleeps out its ten seconds.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/eapache/go-resiliency/breaker.(*Breaker).timer"))
}

// fakeBroker is an embedded broker that can go away and come back on its port with its data.
type fakeBroker struct {
	t    *testing.T
	port int
	dir  string
	opts []kfake.Opt

	mu      sync.Mutex
	cluster *kfake.Cluster
}

func newFakeBroker(t *testing.T, opts ...kfake.Opt) *fakeBroker {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &fakeBroker{t: t, port: listener.Addr().(*net.TCPAddr).Port, dir: t.TempDir(), opts: opts}
	_ = listener.Close()
	b.start()
	t.Cleanup(b.stop)
	return b
}

func (b *fakeBroker) config() Config {
	return Config{Brokers: []string{net.JoinHostPort("127.0.0.1", strconv.Itoa(b.port))}}
}

func (b *fakeBroker) start() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	opts := append([]kfake.Opt{kfake.NumBrokers(1), kfake.Ports(b.port), kfake.DataDir(b.dir)}, b.opts...)
	cluster, err := kfake.NewCluster(opts...)
	if err != nil {
		b.t.Fatal(err)
	}
	b.cluster = cluster
}

func (b *fakeBroker) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cluster != nil {
		b.cluster.Close()
		b.cluster = nil
	}
}

// deleteTopics is a wipe: with them goes all that was committed.
func (b *fakeBroker) deleteTopics(names ...string) {
	b.t.Helper()
	admin := newAdmin(b.t, b.config())
	defer func() { _ = admin.Close() }()
	for _, name := range names {
		if err := admin.DeleteTopic(name); err != nil {
			b.t.Fatal(err)
		}
	}
}

// within is a context that ends before the test would hang.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// numbered makes events n, n+1, … to-1 of a type, each with its number as id, over the given keys.
func numbered(t *testing.T, typ string, from, to, keys int) []event.Event {
	t.Helper()
	var events []event.Event
	for n := from; n < to; n++ {
		e, err := jobevent.New(typ, jobevent.Meta{
			Function: "test", ID: strconv.Itoa(n), Key: fmt.Sprint("key", n%keys),
		}, map[string]int{"n": n})
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	return events
}

func newProducer(t *testing.T, cfg Config) *Producer {
	t.Helper()
	p, err := NewProducer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func publish(t *testing.T, p *Producer, events []event.Event) {
	t.Helper()
	if err := p.Publish(within(t, time.Minute), events); err != nil {
		t.Fatal(err)
	}
}

// seen collects what consumers were given: how often, and in which order for each key.
type seen struct {
	mu      sync.Mutex
	changed chan struct{}
	times   map[string]int
	order   map[string][]int
	total   int
}

func newSeen() *seen {
	return &seen{changed: make(chan struct{}, 1), times: map[string]int{}, order: map[string][]int{}}
}

func (s *seen) add(batch []*sarama.ConsumerMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range batch {
		e, err := Decode(m)
		if err != nil {
			panic(err)
		}
		n, err := strconv.Atoi(e.ID())
		if err != nil {
			panic(err)
		}
		s.times[e.ID()]++
		s.total++
		s.order[string(m.Key)] = append(s.order[string(m.Key)], n)
	}
	signal(s.changed)
}

// wait returns once distinct events have been seen.
func (s *seen) wait(ctx context.Context, t *testing.T, distinct int) {
	t.Helper()
	for {
		s.mu.Lock()
		n := len(s.times)
		s.mu.Unlock()
		if n >= distinct {
			return
		}
		select {
		case <-s.changed:
		case <-ctx.Done():
			t.Fatalf("saw %d of %d events before the deadline", n, distinct)
		}
	}
}

func (s *seen) duplicates() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total - len(s.times)
}

// firstsInOrder says whether each key's events were first seen in the order they were published.
func (s *seen) firstsInOrder() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, numbers := range s.order {
		highest := -1
		known := map[int]bool{}
		for _, n := range numbers {
			if !known[n] && n < highest {
				return fmt.Errorf("%s: %d first seen after %d", key, n, highest)
			}
			known[n] = true
			highest = max(highest, n)
		}
	}
	return nil
}

// member is a running BatchConsumer.
type member struct {
	*BatchConsumer
	stop     func() // ends it and waits
	stopping func() bool
}

func startMember(t *testing.T, cfg Config, group string, topics []string, limit int, handle BatchHandler) *member {
	t.Helper()
	b, err := NewBatchConsumer(cfg, group, topics, limit)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx, handle) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run consumer: %v", err)
		}
	})
	t.Cleanup(stop)
	return &member{BatchConsumer: b, stop: stop, stopping: func() bool { return ctx.Err() != nil }}
}

// until polls what nothing signals.
func until(ctx context.Context, t *testing.T, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("never: %s", what)
		}
	}
}

func (s *seen) handle(_ context.Context, batch []*sarama.ConsumerMessage) error {
	s.add(batch)
	return nil
}

// committed is the sum of a group's committed offsets on a topic.
func committed(t *testing.T, cfg Config, group, topic string) int64 {
	t.Helper()
	admin := newAdmin(t, cfg)
	defer func() { _ = admin.Close() }()
	answer, err := admin.ListConsumerGroupOffsets(group, nil)
	if err != nil {
		t.Fatal(err)
	}
	var sum int64
	for _, block := range answer.Blocks[topic] {
		sum += max(block.Offset, 0)
	}
	return sum
}

// members are the ids of a group's members.
func members(t *testing.T, cfg Config, group string) []string {
	t.Helper()
	admin := newAdmin(t, cfg)
	defer func() { _ = admin.Close() }()
	groups, err := admin.DescribeConsumerGroups([]string{group})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for id := range groups[0].Members {
		ids = append(ids, id)
	}
	return ids
}

func newAdmin(t *testing.T, cfg Config) sarama.ClusterAdmin {
	t.Helper()
	client, err := openClient(cfg, func(s *sarama.Config) { s.Metadata.Full = true })
	if err != nil {
		t.Fatal(err)
	}
	admin, err := sarama.NewClusterAdminFromClient(client)
	if err != nil {
		t.Fatal(err)
	}
	return admin
}

// pending is how many records are fetched and not taken.
func (c *GroupConsumer) pending() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, p := range c.parts {
		n += len(p.pending)
	}
	return n
}

// partitions is how many partitions a topic has, 0 when it is missing.
func (b *fakeBroker) partitions(topic string) int {
	b.t.Helper()
	admin := newAdmin(b.t, b.config())
	defer func() { _ = admin.Close() }()
	found, err := admin.DescribeTopics([]string{topic})
	if err != nil {
		b.t.Fatal(err)
	}
	return len(found[0].Partitions)
}
