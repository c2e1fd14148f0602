package localkafka_test

import (
	"testing"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/jobweaver/jobweaver/infra/laptop/localkafka"
)

func TestWhatAllGroupsHaveReadIsTrimmed(t *testing.T) {
	t.Parallel()
	cluster, err := kfake.NewCluster(kfake.Ports(0), kfake.BrokerConfigs(map[string]string{"message.max.bytes": "4194304"}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	brokers := cluster.ListenAddrs()
	createTopic(t, brokers)
	produce(t, brokers, 0, 5000)
	start := func() int64 { return cluster.PartitionInfo(topic, 0).LogStartOffset }
	trim := func(lookBack, want int64) {
		t.Helper()
		if err := localkafka.Trim(cluster, lookBack); err != nil {
			t.Fatal(err)
		}
		if got := start(); got != want {
			t.Errorf("with %d to look back on, the log starts at %d, want %d", lookBack, got, want)
		}
	}
	trim(0, 0) // no group reads it, such as dead letters
	commit(t, brokers, 3000)
	commitOf(t, brokers, "slow", 1500)
	trim(4500, 0) // of which there are only 500 more
	trim(0, 1500)
	commitOf(t, brokers, "slow", 2400)
	trim(0, 1500) // too few records
	commitOf(t, brokers, "slow", 4500)
	trim(0, 3000)
	commit(t, brokers, 5000)
	joinOnly(t, brokers, "newcomer")
	trim(0, 3000) // the group has read nothing yet
	consumeFrom(t, brokers, 3000, 5000)
}

// joinOnly makes a group whose member has subscribed to the topic and committed nothing.
func joinOnly(t *testing.T, brokers []string, group string) {
	t.Helper()
	c, err := sarama.NewConsumerGroupFromClient(group, client(t, brokers))
	if err != nil {
		t.Fatal(err)
	}
	joined := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = c.Consume(t.Context(), []string{topic}, joinedHandler{joined})
	}()
	t.Cleanup(func() {
		_ = c.Close()
		<-done
	})
	select {
	case <-joined:
	case <-t.Context().Done():
	}
}

type joinedHandler struct{ joined chan struct{} }

func (h joinedHandler) Setup(sarama.ConsumerGroupSession) error {
	close(h.joined)
	return nil
}

func (joinedHandler) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (joinedHandler) ConsumeClaim(s sarama.ConsumerGroupSession, _ sarama.ConsumerGroupClaim) error {
	<-s.Context().Done()
	return nil
}
