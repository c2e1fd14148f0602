package kafkaevent

import (
	"context"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

func TestBatchConsumerTakesWhatWasPublished(t *testing.T) {
	t.Parallel()
	b := newFakeBroker(t)
	got := newSeen()
	began := time.Now()
	m := startMember(t, b.config(), "g", []string{jobevent.TopicCreated}, 500,
		func(_ context.Context, batch []*sarama.ConsumerMessage) error {
			t.Log("batch of", len(batch), time.Since(began))
			got.add(batch)
			return nil
		})
	p := newProducer(t, b.config())
	publish(t, p, numbered(t, jobevent.TypeCreated, 0, 5000, 7))
	t.Log("published", time.Since(began))
	got.wait(within(t, 30*time.Second), t, 5000)
	t.Log("seen", time.Since(began))
	until(within(t, 10*time.Second), t, "no lag", func() bool {
		var lag int64
		for _, p := range m.Group().Partitions() {
			lag += p.Lag()
		}
		return lag == 0
	})
	t.Log("lag 0", time.Since(began))
	m.stop()
	t.Log("stopped", time.Since(began))
	if err := got.firstsInOrder(); err != nil {
		t.Error(err)
	}
	if d := got.duplicates(); d != 0 {
		t.Errorf("%d duplicates", d)
	}
}
