package kafkatest_test

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"github.com/jobweaver/jobweaver/shared/kafkatest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestARecordGoesRoundOnTheTestsOwnTopic(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	topic := kafkatest.Prefix() + "round"
	client, err := kgo.NewClient(kgo.SeedBrokers(kafkatest.Brokers(t)...),
		kgo.ConsumeTopics(topic), kgo.DefaultProduceTopic(topic), kgo.UnknownTopicRetries(-1))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	create := kmsg.NewPtrCreateTopicsRequest()
	wanted := kmsg.NewCreateTopicsRequestTopic()
	wanted.Topic, wanted.NumPartitions, wanted.ReplicationFactor = topic, 1, 1
	create.Topics = append(create.Topics, wanted)
	if _, err := create.RequestWith(ctx, client); err != nil {
		t.Fatal(err)
	}
	if err := client.ProduceSync(ctx, kgo.StringRecord("here")).FirstErr(); err != nil {
		t.Fatal(err)
	}
	records := client.PollFetches(ctx).Records()
	if len(records) != 1 || string(records[0].Value) != "here" {
		t.Errorf("read %v", records)
	}
}
