package kafkaevent

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/testwait"
)

func (p *place) tailer(got *seen) *Tailer {
	p.t.Helper()
	tailer, err := NewTailer(p.cfg, p.topic)
	if err != nil {
		p.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- tailer.Run(ctx, func(m *sarama.ConsumerMessage) {
			if err := got.handle(ctx, []*sarama.ConsumerMessage{m}); err != nil {
				p.t.Error(err)
			}
		})
	}()
	p.t.Cleanup(sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			p.t.Errorf("run tailer: %v", err)
		}
	}))
	return tailer
}

func TestEachTailerReadsAllFromTheEndOn(t *testing.T) {
	t.Parallel()
	ctx := testwait.Within(t, time.Minute)
	p := newPlace(t)
	producer := p.producer()
	publish(t, producer, p.events(0, 100, 20))
	one, two := newSeen(), newSeen()
	for _, got := range []*seen{one, two} {
		<-p.tailer(got).Started()
	}
	publish(t, producer, p.events(100, 150, 20))
	for _, got := range []*seen{one, two} {
		got.wait(ctx, t, 50)
		if got.times["99"] != 0 || got.times["100"] != 1 {
			t.Error("did not begin at the end")
		}
	}
}

func TestADeletedJobGoesThroughTheBrokerAsATombstone(t *testing.T) {
	t.Parallel()
	ctx := testwait.Within(t, time.Minute)
	b := newBroker(t)
	b.topic = jobevent.TopicStatus
	received := make(chan *sarama.ConsumerMessage, 1)
	tailer, err := NewTailer(b.cfg, b.topic)
	if err != nil {
		t.Fatal(err)
	}
	tailing, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	group.Go(func() {
		if err := tailer.Run(tailing, func(m *sarama.ConsumerMessage) { received <- m }); err != nil {
			t.Error(err)
		}
	})
	defer group.Wait()
	defer cancel()
	<-tailer.Started()
	deleted, err := jobevent.NewDeleted(jobevent.Meta{Function: "command", JobID: uuid.New()}, 12)
	if err != nil {
		t.Fatal(err)
	}
	e := deleted.Event()
	publish(t, b.producer(), []event.Event{e})
	select {
	case m := <-received:
		back, err := Decode(m)
		if m.Value != nil || string(m.Key) != e.Subject() || err != nil || back.String() != e.String() {
			t.Errorf("received %q under %q: %s, %v", m.Value, m.Key, back, err)
		}
	case <-ctx.Done():
		t.Error("received nothing")
	}
}

func TestATailerOutlivesARestartAndAWipe(t *testing.T) {
	t.Parallel()
	ctx := testwait.Within(t, 2*time.Minute)
	b := newBroker(t)
	b.stop()
	got := newSeen()
	tailer := b.tailer(got) // started before the broker and the topic exist
	b.start()
	<-tailer.Started()
	producer := b.producer()
	publish(t, producer, b.events(0, 50, 20))
	got.wait(ctx, t, 50)
	b.stop()
	b.start()
	publish(t, producer, b.events(50, 100, 20))
	got.wait(ctx, t, 100)
	b.deleteTopic()
	until(ctx, t, "the topic is back", func() bool { return b.partitions() == 12 })
	publish(t, producer, b.events(100, 110, 20))
	got.wait(ctx, t, 110)
}
