package runjob

import (
	"testing"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/kafkaevent"
)

// A queue's topic can grow while its workers run: a worker beyond the twelfth then has a partition.
func TestATopicGrowsForMoreWorkers(t *testing.T) {
	h := newFixture(t)
	first := h.start(nil)
	before := h.run("SIMULATION", `{"steps":[{"type":"LOG","message":"hi"}]}`)
	h.order(before)
	h.outcome(before)
	const grown = 30
	topic := jobevent.Topic{Name: jobevent.RunTopic(h.queue), Partitions: grown}
	for range 2 { // the second time there is nothing to do
		if err := kafkaevent.GrowTopics(t.Context(), h.kafka, []jobevent.Topic{topic}); err != nil {
			t.Fatal(err)
		}
	}
	second := h.start(nil)
	h.until("two workers share all partitions", func() bool {
		n := len(h.heartbeatOf(first).Partitions[h.queue])
		m := len(h.heartbeatOf(second).Partitions[h.queue])
		return n+m == grown && n >= grown/2-1 && m >= grown/2-1
	})
	producer, err := kafkaevent.NewProducer(h.kafka) // the one before notices within a minute
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(producer.Close)
	h.producer = producer
	for p := range int32(grown) {
		run := h.run("SIMULATION", `{"steps":[{"type":"LOG","message":"hi"}]}`)
		h.send(eventsOf(h.event(run, p))...)
		h.outcome(run)
	}
}
