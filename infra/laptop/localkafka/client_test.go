package localkafka_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/jobweaver/jobweaver/shared/testwait"
)

const topic, group = "kept", "readers"

func client(t *testing.T, brokers []string) sarama.Client {
	t.Helper()
	cfg := sarama.NewConfig()
	cfg.Version = sarama.V2_8_0_0
	cfg.Producer.Return.Successes = true
	cfg.Producer.RequiredAcks = sarama.WaitForAll
	cfg.Producer.MaxMessageBytes = 2<<20 + 1024
	cfg.Consumer.Offsets.AutoCommit.Enable = false
	c, err := sarama.NewClient(brokers, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func createTopic(t *testing.T, brokers []string) {
	t.Helper()
	admin, err := sarama.NewClusterAdminFromClient(client(t, brokers))
	if err != nil {
		t.Fatal(err)
	}
	if err := admin.CreateTopic(topic, &sarama.TopicDetail{NumPartitions: 1, ReplicationFactor: 1}, false); err != nil {
		t.Fatal(err)
	}
}

// produce sends the records with the numbers from first up to last, without last. One of them has the largest permitted
// size.
func produce(t *testing.T, brokers []string, first, last int) {
	t.Helper()
	producer, err := sarama.NewSyncProducerFromClient(client(t, brokers))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = producer.Close() }()
	for n := first; n < last; n++ {
		value := make([]byte, 10)
		if n == first {
			value = make([]byte, 2<<20-100)
		}
		m := &sarama.ProducerMessage{Topic: topic, Key: sarama.StringEncoder(strconv.Itoa(n)), Value: sarama.ByteEncoder(value)}
		if _, _, err := producer.SendMessage(m); err != nil {
			t.Fatal(err)
		}
	}
}

// consume reads the records with the numbers from 0 up to last, without last.
func consume(t *testing.T, brokers []string, last int) {
	t.Helper()
	consumeFrom(t, brokers, 0, last)
}

// consumeFrom reads from the oldest record, which must have the number first, up to last, without last.
func consumeFrom(t *testing.T, brokers []string, first, last int) {
	t.Helper()
	consumer, err := sarama.NewConsumerFromClient(client(t, brokers))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = consumer.Close() }()
	var partition sarama.PartitionConsumer
	testwait.Retry(t, func() error {
		partition, err = consumer.ConsumePartition(topic, 0, sarama.OffsetOldest)
		return err
	})
	defer func() { _ = partition.Close() }()
	for n := first; n < last; n++ {
		select {
		case m := <-partition.Messages():
			if string(m.Key) != strconv.Itoa(n) {
				t.Fatalf("record %s, want %d", m.Key, n)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("no record %d", n)
		}
	}
}

func commit(t *testing.T, brokers []string, offset int64) {
	t.Helper()
	commitOf(t, brokers, group, offset)
}

func commitOf(t *testing.T, brokers []string, group string, offset int64) {
	t.Helper()
	request := &sarama.OffsetCommitRequest{
		Version: 2, ConsumerGroup: group, ConsumerGroupGeneration: sarama.GroupGenerationUndefined, RetentionTime: -1,
	}
	request.AddBlock(topic, 0, offset, 0, "")
	testwait.Retry(t, func() error {
		answer, err := coordinator(t, brokers, group).CommitOffset(request)
		if err != nil {
			return err
		}
		return failure(answer.Errors[topic][0])
	})
}

func committed(t *testing.T, brokers []string) (offset int64) {
	t.Helper()
	request := &sarama.OffsetFetchRequest{Version: 1, ConsumerGroup: group}
	request.AddPartition(topic, 0)
	testwait.Retry(t, func() error {
		answer, err := coordinator(t, brokers, group).FetchOffset(request)
		if err != nil {
			return err
		}
		offset = answer.GetBlock(topic, 0).Offset
		return failure(answer.GetBlock(topic, 0).Err)
	})
	return offset
}

func failure(code sarama.KError) error {
	if code == sarama.ErrNoError {
		return nil
	}
	return code
}

func coordinator(t *testing.T, brokers []string, group string) *sarama.Broker {
	t.Helper()
	broker, err := client(t, brokers).Coordinator(group)
	if err != nil {
		t.Fatal(err)
	}
	return broker
}
