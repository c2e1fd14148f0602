package kafkaevent

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

func TestConsumerOutlivesABrokerRestart(t *testing.T) {
	t.Parallel()
	ctx := within(t, 2*time.Minute)
	b := newFakeBroker(t)
	p := newProducer(t, b.config())
	publish(t, p, numbered(t, jobevent.TypeCreated, 0, 100, 7))
	got := newSeen()
	startMember(t, b.config(), "g", created, 500, got.handle)
	got.wait(ctx, t, 100)
	b.stop()
	b.start()
	publish(t, p, numbered(t, jobevent.TypeCreated, 100, 200, 7))
	got.wait(ctx, t, 200)
	if err := got.firstsInOrder(); err != nil {
		t.Error(err)
	}
}

func TestABrokerRestartWhileTheHandlerIsBlockedLosesNothing(t *testing.T) {
	t.Parallel()
	ctx := within(t, 2*time.Minute)
	b := newFakeBroker(t)
	p := newProducer(t, b.config())
	publish(t, p, numbered(t, jobevent.TypeCreated, 0, 1000, 7))
	got := newSeen()
	entered, finish := make(chan struct{}, 1), make(chan struct{})
	m := startMember(t, b.config(), "g", created, 100,
		func(ctx context.Context, batch []*sarama.ConsumerMessage) error {
			signal(entered)
			<-finish
			return got.handle(ctx, batch)
		})
	<-entered
	b.stop()
	until(ctx, t, "the session is lost", func() bool { return len(m.Group().Partitions()) == 0 })
	b.start()
	close(finish)
	publish(t, p, numbered(t, jobevent.TypeCreated, 1000, 1100, 7))
	got.wait(ctx, t, 1100)
	if err := got.firstsInOrder(); err != nil {
		t.Error(err)
	}
	if d := got.duplicates(); d > 100 {
		t.Errorf("%d events came twice, want at most the batch in flight", d)
	}
}

func TestConsumerWaitsForABrokerThatIsNotThereYet(t *testing.T) {
	t.Parallel()
	ctx := within(t, 2*time.Minute)
	b := newFakeBroker(t)
	b.stop()
	got := newSeen()
	m := startMember(t, b.config(), "g", created, 500, got.handle)
	if m.Group().Joined() {
		t.Error("joined without a broker")
	}
	b.start()
	until(ctx, t, "joined", m.Group().Joined)
	publish(t, newProducer(t, b.config()), numbered(t, jobevent.TypeCreated, 0, 10, 7))
	got.wait(ctx, t, 10)
}

func TestAWipedTopicIsReadFromItsBeginning(t *testing.T) {
	t.Parallel()
	// How much is in the new topic when the consumer looks again: less than it had read, or more, so
	// that its old place exists.
	for name, after := range map[string]int{"shorter than before": 50, "longer than before": 2000} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := within(t, 2*time.Minute)
			b := newFakeBroker(t)
			p := newProducer(t, b.config())
			publish(t, p, numbered(t, jobevent.TypeCreated, 0, 500, 7))
			got := newSeen()
			startMember(t, b.config(), "g", created, 500, got.handle)
			got.wait(ctx, t, 500)
			b.deleteTopics(created...)
			if err := CreateTopics(ctx, b.config(), ourTopics(created)); err != nil {
				t.Fatal(err)
			}
			publish(t, p, numbered(t, jobevent.TypeCreated, 500, 500+after, 7))
			got.wait(ctx, t, 500+after)
			until(ctx, t, "the new offsets are committed", func() bool {
				return committed(t, b.config(), "g", created[0]) == int64(after)
			})
		})
	}
}

func TestAVanishedTopicIsCreatedAgain(t *testing.T) {
	t.Parallel()
	ctx := within(t, 2*time.Minute)
	b := newFakeBroker(t)
	p := newProducer(t, b.config())
	publish(t, p, numbered(t, jobevent.TypeCreated, 0, 100, 7))
	got := newSeen()
	startMember(t, b.config(), "g", created, 500, got.handle)
	got.wait(ctx, t, 100)
	b.deleteTopics(created...)
	until(ctx, t, "the topic is back", func() bool { return b.partitions(created[0]) == 3 })
	publish(t, p, numbered(t, jobevent.TypeCreated, 100, 150, 7))
	got.wait(ctx, t, 150)
}

func TestABrokerThatComesBackEmptyIsReadFromTheBeginning(t *testing.T) {
	t.Parallel()
	ctx := within(t, 2*time.Minute)
	b := newFakeBroker(t)
	p := newProducer(t, b.config())
	publish(t, p, numbered(t, jobevent.TypeCreated, 0, 500, 7))
	got := newSeen()
	startMember(t, b.config(), "g", created, 500, got.handle)
	got.wait(ctx, t, 500)
	b.stop()
	if err := os.RemoveAll(b.dir); err != nil {
		t.Fatal(err)
	}
	b.start()
	publish(t, p, numbered(t, jobevent.TypeCreated, 500, 1500, 7))
	got.wait(ctx, t, 1500)
}

func TestPublishIsBoundedWhileTheBrokerIsAway(t *testing.T) {
	t.Parallel()
	b := newFakeBroker(t)
	p := newProducer(t, b.config())
	publish(t, p, numbered(t, jobevent.TypeCreated, 0, 1, 1))
	b.stop()
	ctx := within(t, 300*time.Millisecond)
	began := time.Now()
	err := p.Publish(ctx, numbered(t, jobevent.TypeCreated, 1, 2, 1))
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("returned %s after a context of 300 ms", took)
	}
	if err == nil || (!errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil) {
		t.Errorf("published to a dead broker: %v", err)
	}
	if err := p.Publish(context.Background(), numbered(t, jobevent.TypeCreated, 1, 2, 1)); err == nil {
		t.Error("published to a dead broker")
	}
	b.start()
	until(within(t, time.Minute), t, "published again", func() bool {
		return p.Publish(context.Background(), numbered(t, jobevent.TypeCreated, 1, 2, 1)) == nil
	})
}
