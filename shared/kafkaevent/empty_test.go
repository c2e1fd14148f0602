package kafkaevent

import (
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/testwait"
)

// With fewer partitions than before, some of a queue's workers would have no work after a restore.
func TestATopicThatHasGrownIsEmptiedWithAllItsPartitions(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	ctx := testwait.Within(t, time.Minute)
	created := jobevent.RunTopic("created")
	if err := CreateTopics(ctx, b.cfg, jobevent.Topics([]string{"created"})); err != nil {
		t.Fatal(err)
	}
	grown := []jobevent.Topic{{Name: jobevent.TopicRun, Partitions: 15}, {Name: created, Partitions: 20}}
	if err := GrowTopics(ctx, b.cfg, grown); err != nil {
		t.Fatal(err)
	}
	if err := EmptyTopics(ctx, b.cfg, jobevent.Topics(nil)); err != nil {
		t.Fatal(err)
	}
	b.admin(func(a sarama.ClusterAdmin) error {
		there, err := a.ListTopics()
		for name, want := range map[string]int32{jobevent.TopicRun: 15, created: 20, jobevent.TopicCreated: 3} {
			if got := there[name].NumPartitions; got != want {
				t.Errorf("%s has %d partitions, want %d", name, got, want)
			}
		}
		return err
	})
}
