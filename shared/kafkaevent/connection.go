package kafkaevent

import (
	"context"
	"slices"
	"sync"

	"github.com/IBM/sarama"
)

// connection is one sarama producer with who uses it; the last one out closes it.
type connection struct {
	sarama.SyncProducer
	client sarama.Client
	users  sync.WaitGroup

	mu    sync.Mutex
	known map[string]bool // topics that were there
}

// openConnection makes the client itself: sarama's own would be left behind when the broker then has
// no producer id for us.
func openConnection(cfg Config) (*connection, error) {
	client, err := openClient(cfg, func(s *sarama.Config) { idempotent(s) })
	if err != nil {
		return nil, err
	}
	producer, err := sarama.NewSyncProducerFromClient(client)
	if err != nil {
		_ = client.Close()
		return nil, cfg.unreached(err)
	}
	return &connection{SyncProducer: producer, client: client, known: map[string]bool{}}, nil
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
	_ = c.Close() // neither fails when closed only once
	_ = c.client.Close()
}
