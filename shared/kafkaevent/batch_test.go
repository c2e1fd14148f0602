package kafkaevent

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/jobweaver/jobweaver/shared/testwait"
)

func TestBatchConsumerReadsFromTheBeginningAndCommitsWhatItRead(t *testing.T) {
	t.Parallel()
	ctx := testwait.Within(t, time.Minute)
	p := newPlace(t)
	producer := p.producer()
	publish(t, producer, p.events(0, 5000, 7))
	got := newSeen()
	first := p.member(500, got.handle)
	got.wait(ctx, t, 5000)
	first.stop()
	publish(t, producer, p.events(5000, 5010, 7))
	p.member(500, got.handle)
	got.wait(ctx, t, 5010)

	if err := got.inOrder(); err != nil {
		t.Error(err)
	}
	if d := got.duplicates(); d != 0 {
		t.Errorf("%d events came twice", d)
	}
	if got.largest > 500 {
		t.Errorf("a batch had %d records, want at most 500", got.largest)
	}
}

func TestBatchConsumerCommitsWhileItRuns(t *testing.T) {
	t.Parallel()
	ctx := testwait.Within(t, time.Minute)
	p := newPlace(t)
	publish(t, p.producer(), p.events(0, 100, 7))
	got := newSeen()
	m := p.member(10, got.handle)
	got.wait(ctx, t, 100)
	until(ctx, t, "all is committed", func() bool { return p.committed() == 100 })
	for _, part := range m.Group().Partitions() {
		if part.Lag() != 0 {
			t.Errorf("partition %d lags by %d", part.ID, part.Lag())
		}
	}
}

func TestMembersComeAndGoWithoutLoss(t *testing.T) {
	t.Parallel()
	ctx := testwait.Within(t, 2*time.Minute)
	p := newPlace(t)
	other := *p
	other.queue, other.topic = p.queue+"2", p.topic+"2"
	got := newSeen()
	start := func() *member { return p.member(50, got.handle, other.topic) }

	stopPublishing, published := make(chan struct{}), make(chan int)
	producer := p.producer()
	go func() {
		n := 0
		for ; ctx.Err() == nil; n += 100 {
			events := append(p.events(n, n+50, 20), other.events(n+50, n+100, 20)...)
			if err := producer.Publish(ctx, events); err != nil {
				t.Error(err)
			}
			select {
			case <-stopPublishing:
				published <- n + 100
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	}()
	one := start()
	until(ctx, t, "the first holds all", one.holds(24))
	two := start()
	until(ctx, t, "the second holds its share", two.holds(12))
	three := start()
	until(ctx, t, "the third holds its share", three.holds(8))
	one.stop()
	until(ctx, t, "the second holds half again", two.holds(12))
	four := start()
	until(ctx, t, "the fourth holds its share", four.holds(8))
	two.stop()
	three.stop()
	until(ctx, t, "the fourth holds all", four.holds(24))
	close(stopPublishing)
	total := <-published
	got.wait(ctx, t, total)

	if err := got.inOrder(); err != nil {
		t.Error(err)
	}
	if d := got.duplicates(); d > total/50 {
		t.Errorf("%d of %d events came twice", d, total)
	}
	t.Logf("%d events, %d duplicates", total, got.duplicates())
}

func TestAFailedBatchComesAgain(t *testing.T) {
	t.Parallel()
	ctx := testwait.Within(t, time.Minute)
	p := newPlace(t)
	publish(t, p.producer(), p.events(0, 100, 7))
	got := newSeen()
	var calls atomic.Int64
	p.member(30, func(ctx context.Context, batch []*sarama.ConsumerMessage) error {
		if calls.Add(1) <= 2 {
			return errors.New("not now")
		}
		return got.handle(ctx, batch)
	})
	got.wait(ctx, t, 100)
	if d := got.duplicates(); d != 0 {
		t.Errorf("%d events came twice", d)
	}
}

func TestStopWaitsForTheBatchInFlightAndCommitsIt(t *testing.T) {
	t.Parallel()
	ctx := testwait.Within(t, time.Minute)
	p := newPlace(t)
	publish(t, p.producer(), p.events(0, 100, 1))
	entered, finish := make(chan struct{}), make(chan struct{})
	var took atomic.Int64
	m := p.member(10, func(ctx context.Context, batch []*sarama.ConsumerMessage) error {
		close(entered) // a second batch would panic
		<-finish
		took.Store(int64(len(batch)))
		return ctx.Err() // alive: the grace has only begun
	})
	<-entered
	stopped := make(chan struct{})
	go func() { m.stop(); close(stopped) }()
	until(ctx, t, "stopping", m.stopping)
	close(finish)
	<-stopped
	if n := p.committed(); n == 0 || n != took.Load() {
		t.Errorf("%d records committed of the batch's %d", n, took.Load())
	}
	if left := p.members(); len(left) != 0 {
		t.Errorf("the group still has %v", left)
	}
}

func TestTheHandlersContextEndsAfterTheGrace(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	publish(t, p.producer(), p.events(0, 1, 1))
	c, err := NewBatchConsumer(p.cfg, p.group, []string{p.topic}, 10)
	if err != nil {
		t.Fatal(err)
	}
	c.Grace = time.Millisecond
	ctx, cancel := context.WithCancel(testwait.Within(t, time.Minute))
	err = c.Run(ctx, whole(func(ctx context.Context, _ []*sarama.ConsumerMessage) error {
		cancel()
		<-ctx.Done()
		return ctx.Err()
	}))
	if err != nil {
		t.Fatal(err)
	}
	if n := p.committed(); n != 0 {
		t.Errorf("%d records committed of a batch that was given up", n)
	}
}

func TestAStuckHandlerKeepsItsMembershipAndMemoryBounded(t *testing.T) {
	t.Parallel()
	ctx := testwait.Within(t, 2*time.Minute)
	p := newPlace(t)
	producer := p.producer()
	publish(t, producer, p.events(0, 1, 1))
	got := newSeen()
	entered, finish := make(chan struct{}, 1), make(chan struct{})
	m := p.member(500, func(ctx context.Context, batch []*sarama.ConsumerMessage) error {
		signal(entered)
		<-finish
		return got.handle(ctx, batch)
	})
	<-entered
	before := p.members()
	const total = 40_000
	for n := 1; n < total; n += 1000 {
		publish(t, producer, p.events(n, min(n+1000, total), 30))
	}
	<-time.After(sessionTimeout + 2*time.Second) // the condition that ends it takes this long
	if after := p.members(); len(after) != 1 || after[0] != before[0] {
		t.Errorf("members were %v, are %v", before, after)
	}
	if n := m.Group().fetched(); n < maxPendingRecords/2 || n > total*3/4 {
		t.Errorf("%d of %d records are in memory", n, total)
	}
	close(finish)
	got.wait(ctx, t, total)
	if d := got.duplicates(); d != 0 {
		t.Errorf("%d events came twice", d)
	}
}
