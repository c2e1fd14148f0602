package kafkaevent

import (
	"context"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/jobweaver/jobweaver/shared/testwait"
)

func TestConsumerOutlivesABrokerRestart(t *testing.T) {
	t.Parallel()
	ctx := testwait.Within(t, 2*time.Minute)
	b := newBroker(t)
	producer := b.producer()
	publish(t, producer, b.events(0, 100, 7))
	got := newSeen()
	b.member(500, got.handle)
	got.wait(ctx, t, 100)
	b.stop()
	b.start()
	publish(t, producer, b.events(100, 200, 7))
	got.wait(ctx, t, 200)
	if err := got.inOrder(); err != nil {
		t.Error(err)
	}
}

func TestABrokerRestartWhileTheHandlerIsBlockedLosesNothing(t *testing.T) {
	t.Parallel()
	ctx := testwait.Within(t, 2*time.Minute)
	b := newBroker(t)
	producer := b.producer()
	publish(t, producer, b.events(0, 1000, 7))
	got := newSeen()
	entered, finish := make(chan struct{}, 1), make(chan struct{})
	m := b.member(100, func(ctx context.Context, batch []*sarama.ConsumerMessage) error {
		signal(entered)
		<-finish
		return got.handle(ctx, batch)
	})
	<-entered
	b.stop()
	until(ctx, t, "the session is lost", m.holds(0))
	b.start()
	close(finish)
	publish(t, producer, b.events(1000, 1100, 7))
	got.wait(ctx, t, 1100)
	if err := got.inOrder(); err != nil {
		t.Error(err)
	}
	if d := got.duplicates(); d > 100 {
		t.Errorf("%d events came twice, want at most the batch in flight", d)
	}
}

func TestConsumerWaitsForABrokerThatIsNotThereYet(t *testing.T) {
	t.Parallel()
	ctx := testwait.Within(t, 2*time.Minute)
	b := newBroker(t)
	b.stop()
	got := newSeen()
	m := b.member(500, got.handle)
	if m.Group().Joined() {
		t.Error("joined without a broker")
	}
	b.start()
	until(ctx, t, "joined", m.Group().Joined)
	publish(t, b.producer(), b.events(0, 10, 7))
	got.wait(ctx, t, 10)
}

func TestAWipedTopicIsReadFromItsBeginning(t *testing.T) {
	t.Parallel()
	// How much is in the new topic when the consumer looks again: less than it had read, or more, so
	// that its old place exists.
	for name, after := range map[string]int{"shorter than before": 50, "longer than before": 3000} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := testwait.Within(t, 2*time.Minute)
			p := newPlace(t)
			producer := p.producer()
			publish(t, producer, p.events(0, 500, 7))
			got := newSeen()
			p.member(500, got.handle)
			got.wait(ctx, t, 500)
			p.deleteTopic()
			p.createTopic()
			publish(t, producer, p.events(500, 500+after, 7))
			got.wait(ctx, t, 500+after)
			until(ctx, t, "the new offsets are committed", func() bool { return p.committed() == int64(after) })
		})
	}
}

func TestAVanishedTopicIsCreatedAgain(t *testing.T) {
	t.Parallel()
	ctx := testwait.Within(t, 2*time.Minute)
	p := newPlace(t)
	producer := p.producer()
	publish(t, producer, p.events(0, 100, 7))
	got := newSeen()
	p.member(500, got.handle)
	got.wait(ctx, t, 100)
	p.deleteTopic()
	until(ctx, t, "the topic is back", func() bool { return p.partitions() == 12 })
	publish(t, producer, p.events(100, 150, 7))
	got.wait(ctx, t, 150)
}

func TestABrokerThatComesBackEmptyIsReadFromTheBeginning(t *testing.T) {
	t.Parallel()
	ctx := testwait.Within(t, 2*time.Minute)
	b := newBroker(t)
	producer := b.producer()
	publish(t, producer, b.events(0, 500, 7))
	got := newSeen()
	b.member(500, got.handle)
	got.wait(ctx, t, 500)
	b.stop()
	b.wipe()
	b.start()
	publish(t, producer, b.events(500, 1500, 7))
	got.wait(ctx, t, 1500)
}
