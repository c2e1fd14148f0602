package kafkaevent

import (
	"context"
	"slices"
	"sync"

	"github.com/IBM/sarama"
)

// connection is one client of the brokers with a producer id; the last one out closes it.
type connection struct {
	client sarama.Client
	users  sync.WaitGroup
	id     int64 // the producer's
	epoch  int16

	mu        sync.Mutex
	known     map[string]bool          // topics that were there
	ways      map[int32]*way           // by broker
	sequences map[topicPartition]int32 // the next record's
}

// topicPartition names a partition.
type topicPartition struct {
	topic string
	id    int32
}

func openConnection(cfg Config) (*connection, error) {
	client, err := openClient(cfg, func(*sarama.Config) {})
	if err != nil {
		return nil, err
	}
	answer, err := producerID(client)
	if err != nil {
		_ = client.Close()
		return nil, cfg.unreached(err)
	}
	return &connection{
		client: client, id: answer.ProducerID, epoch: answer.ProducerEpoch,
		known: map[string]bool{}, ways: map[int32]*way{}, sequences: map[topicPartition]int32{},
	}, nil
}

// producerID asks for a new one. The client's own method asks for number zero.
func producerID(client sarama.Client) (*sarama.InitProducerIDResponse, error) {
	broker := client.LeastLoadedBroker()
	if broker == nil {
		return nil, sarama.ErrBrokerNotAvailable
	}
	answer, err := broker.InitProducerID(&sarama.InitProducerIDRequest{Version: 4, ProducerID: -1, ProducerEpoch: -1})
	if err == nil && answer.Err != sarama.ErrNoError {
		err = answer.Err
	}
	return answer, err
}

// ensure creates the topics that are missing when the connection first sends to them. One that
// vanishes later fails the connection, and meets the next one's ensure.
func (c *connection) ensure(ctx context.Context, cfg Config, messages []*sarama.ProducerMessage) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var names []string
	for _, m := range messages {
		if !c.known[m.Topic] && !slices.Contains(names, m.Topic) {
			names = append(names, m.Topic)
		}
	}
	if len(names) == 0 {
		return nil
	}
	if err := CreateTopics(ctx, cfg, ourTopics(names)); err != nil {
		return err
	}
	for _, name := range names {
		c.known[name] = true
	}
	return nil
}

func (c *connection) close() {
	c.users.Wait()
	_ = c.client.Close() // fails only when it is closed twice
}
