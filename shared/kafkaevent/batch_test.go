package kafkaevent

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

var created = []string{jobevent.TopicCreated}

func TestBatchConsumerReadsFromTheBeginningAndCommitsWhatItRead(t *testing.T) {
	t.Parallel()
	ctx := within(t, time.Minute)
	b := newFakeBroker(t)
	p := newProducer(t, b.config())
	publish(t, p, numbered(t, jobevent.TypeCreated, 0, 5000, 7))
	got := newSeen()
	var largest atomic.Int64
	handle := func(_ context.Context, batch []*sarama.ConsumerMessage) error {
		largest.Store(max(largest.Load(), int64(len(batch))))
		got.add(batch)
		return nil
	}
	first := startMember(t, b.config(), "g", created, 500, handle)
	got.wait(ctx, t, 5000)
	first.stop()
	publish(t, p, numbered(t, jobevent.TypeCreated, 5000, 5010, 7))
	startMember(t, b.config(), "g", created, 500, handle)
	got.wait(ctx, t, 5010)

	if err := got.firstsInOrder(); err != nil {
		t.Error(err)
	}
	if d := got.duplicates(); d != 0 {
		t.Errorf("%d events came twice", d)
	}
	if largest.Load() != 500 {
		t.Errorf("largest batch of a backlog had %d records, want 500", largest.Load())
	}
}

func TestBatchConsumerCommitsWhileItRuns(t *testing.T) {
	t.Parallel()
	ctx := within(t, time.Minute)
	b := newFakeBroker(t)
	publish(t, newProducer(t, b.config()), numbered(t, jobevent.TypeCreated, 0, 100, 7))
	got := newSeen()
	m := startMember(t, b.config(), "g", created, 10, got.handle)
	got.wait(ctx, t, 100)
	until(ctx, t, "all is committed", func() bool { return committed(t, b.config(), "g", created[0]) == 100 })
	for _, p := range m.Group().Partitions() {
		if p.Lag() != 0 {
			t.Errorf("partition %d lags by %d", p.ID, p.Lag())
		}
	}
}

func TestMembersComeAndGoWithoutLoss(t *testing.T) {
	t.Parallel()
	ctx := within(t, 2*time.Minute)
	b := newFakeBroker(t)
	topics := []string{jobevent.TopicCreated, jobevent.TopicCommand}
	got := newSeen()
	start := func() *member { return startMember(t, b.config(), "g", topics, 50, got.handle) }
	holds := func(m *member, n int) func() bool {
		return func() bool { return len(m.Group().Partitions()) == n }
	}

	stopPublishing := make(chan struct{})
	published := make(chan int)
	p := newProducer(t, b.config())
	go func() {
		n := 0
		for {
			select {
			case <-stopPublishing:
				published <- n
				return
			default:
				events := numbered(t, jobevent.TypeCreated, n, n+50, 20)
				if err := p.Publish(ctx, events); err != nil {
					t.Error(err)
				}
				n += 50
			}
		}
	}()
	one := start()
	until(ctx, t, "the first holds all", holds(one, 6))
	two := start()
	until(ctx, t, "the second holds its share", holds(two, 3))
	three := start()
	until(ctx, t, "the third holds its share", holds(three, 2))
	one.stop()
	until(ctx, t, "the second holds half again", holds(two, 3))
	four := start()
	until(ctx, t, "the fourth holds its share", holds(four, 2))
	two.stop()
	three.stop()
	until(ctx, t, "the fourth holds all", holds(four, 6))
	close(stopPublishing)
	total := <-published
	got.wait(ctx, t, total)

	if err := got.firstsInOrder(); err != nil {
		t.Error(err)
	}
	if d := got.duplicates(); d > total/50 {
		t.Errorf("%d of %d events came twice", d, total)
	}
	t.Logf("%d events, %d duplicates", total, got.duplicates())
}

func TestAFailedBatchComesAgain(t *testing.T) {
	t.Parallel()
	ctx := within(t, time.Minute)
	b := newFakeBroker(t)
	publish(t, newProducer(t, b.config()), numbered(t, jobevent.TypeCreated, 0, 100, 7))
	got := newSeen()
	var calls atomic.Int64
	startMember(t, b.config(), "g", created, 30, func(_ context.Context, batch []*sarama.ConsumerMessage) error {
		if calls.Add(1) <= 2 {
			return errors.New("not now")
		}
		got.add(batch)
		return nil
	})
	got.wait(ctx, t, 100)
	if d := got.duplicates(); d != 0 {
		t.Errorf("%d events came twice", d)
	}
}

func TestStopWaitsForTheBatchInFlightAndCommitsIt(t *testing.T) {
	t.Parallel()
	ctx := within(t, time.Minute)
	b := newFakeBroker(t)
	publish(t, newProducer(t, b.config()), numbered(t, jobevent.TypeCreated, 0, 100, 1))
	entered, finish := make(chan struct{}), make(chan struct{})
	m := startMember(t, b.config(), "g", created, 10,
		func(ctx context.Context, _ []*sarama.ConsumerMessage) error {
			close(entered) // a second batch would panic
			<-finish
			return ctx.Err() // alive: the grace has only begun
		})
	<-entered
	stopped := make(chan struct{})
	go func() { m.stop(); close(stopped) }()
	until(ctx, t, "told to stop", func() bool { return m.stopping() })
	close(finish)
	<-stopped
	if n := committed(t, b.config(), "g", created[0]); n != 10 {
		t.Errorf("%d records committed, want the batch of 10", n)
	}
}

func TestTheHandlersContextEndsAfterTheGrace(t *testing.T) {
	t.Parallel()
	b := newFakeBroker(t)
	publish(t, newProducer(t, b.config()), numbered(t, jobevent.TypeCreated, 0, 1, 1))
	entered := make(chan struct{})
	c, err := NewBatchConsumer(b.config(), "g", created, 10)
	if err != nil {
		t.Fatal(err)
	}
	c.Grace = time.Millisecond
	ctx, cancel := context.WithCancel(within(t, time.Minute))
	go func() { <-entered; cancel() }()
	err = c.Run(ctx, func(ctx context.Context, _ []*sarama.ConsumerMessage) error {
		close(entered)
		<-ctx.Done()
		return ctx.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := committed(t, b.config(), "g", created[0]); n != 0 {
		t.Errorf("%d records committed of a batch that was given up", n)
	}
}

func TestAStuckHandlerKeepsItsMembershipAndMemoryBounded(t *testing.T) {
	t.Parallel()
	ctx := within(t, 2*time.Minute)
	b := newFakeBroker(t)
	p := newProducer(t, b.config())
	publish(t, p, numbered(t, jobevent.TypeCreated, 0, 1, 1))
	got := newSeen()
	entered, finish := make(chan struct{}, 1), make(chan struct{})
	m := startMember(t, b.config(), "g", created, 500,
		func(_ context.Context, batch []*sarama.ConsumerMessage) error {
			signal(entered)
			<-finish
			got.add(batch)
			return nil
		})
	<-entered
	before := members(t, b.config(), "g")
	for n := 1; n < 40_001; n += 1000 {
		publish(t, p, numbered(t, jobevent.TypeCreated, n, n+1000, 7))
	}
	<-time.After(sessionTimeout + 2*time.Second) // what would end it takes this long
	if after := members(t, b.config(), "g"); len(after) != 1 || after[0] != before[0] {
		t.Errorf("members were %v, are %v", before, after)
	}
	if n := m.Group().pending(); n < 1000 || n > 2*maxPendingRecords {
		t.Errorf("%d records pending", n)
	}
	close(finish)
	got.wait(ctx, t, 40_001)
	if d := got.duplicates(); d != 0 {
		t.Errorf("%d events came twice", d)
	}
}
