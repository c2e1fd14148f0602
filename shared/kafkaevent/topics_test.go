package kafkaevent

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/testwait"
)

func TestCreateTopicsAtOnceAndAgain(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	topics := []jobevent.Topic{
		{Name: p.topic, Partitions: 12, Retention: time.Hour},
		{Name: p.topic + "-compacted", Partitions: 3, Compacted: true},
	}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			if err := CreateTopics(testwait.Within(t, time.Minute), p.cfg, topics); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	publish(t, p.producer(), p.events(0, 10, 3))
	if err := CreateTopics(testwait.Within(t, time.Minute), p.cfg, topics); err != nil {
		t.Fatal(err)
	}
	got := newSeen()
	p.member(500, got.handle) // the topic was left as it was
	got.wait(testwait.Within(t, time.Minute), t, 10)

	settings := p.settings(p.topic)
	if settings["cleanup.policy"] != "delete" || settings["retention.ms"] != "3600000" ||
		settings["max.message.bytes"] != "2228224" {
		t.Errorf("settings %v", settings)
	}
	if policy := p.settings(p.topic + "-compacted")["cleanup.policy"]; policy != "compact" {
		t.Errorf("cleanup policy %q", policy)
	}
}

func TestAllOurTopicsCanBeCreated(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	topics := jobevent.Topics([]string{p.queue})
	if err := CreateTopics(testwait.Within(t, time.Minute), p.cfg, topics); err != nil {
		t.Fatal(err)
	}
	p.admin(func(a sarama.ClusterAdmin) error {
		missing, err := missingTopics(a, topics)
		if len(missing) != 0 {
			t.Errorf("missing %v", missing)
		}
		return err
	})
	var names []string
	for _, topic := range topics {
		names = append(names, topic.Name)
	}
	if got := ourTopics(append(names, "another-systems")); len(got) != len(topics) {
		t.Errorf("know how to create %v of %v", got, names)
	}
}

func TestCreateTopicsEndsWithItsContext(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	b.stop()
	ctx := testwait.Within(t, 100*time.Millisecond)
	if err := CreateTopics(ctx, b.cfg, ourTopics([]string{b.topic})); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("created topics without a broker: %v", err)
	}
	b.start() // then the calls that still try end
}

func (p *place) settings(topic string) map[string]string {
	p.t.Helper()
	settings := map[string]string{}
	p.admin(func(a sarama.ClusterAdmin) error {
		found, err := a.DescribeConfigs(
			[]*sarama.ConfigResource{{Type: sarama.TopicResource, Name: topic}}, sarama.DescribeConfigsOptions{})
		if err != nil {
			return err
		}
		for _, e := range found[0].Configs {
			settings[e.Name] = e.Value
		}
		return nil
	})
	return settings
}
