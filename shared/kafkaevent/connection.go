package kafkaevent

import (
	"context"
	"slices"
	"sync"

	"github.com/IBM/sarama"
)

// connection is one client of the brokers; its last user closes it.
type connection struct {
	client sarama.Client
	users  sync.WaitGroup

	mu      sync.Mutex
	known   map[string]bool         // topics that exist
	senders map[int32]*brokerSender // by broker
	retired bool                    // no further messages are sent
}

func openConnection(cfg Config, lines *lines) (*connection, error) {
	client, err := openClient(cfg, lines.use)
	if err != nil {
		return nil, err
	}
	return &connection{client: client, known: map[string]bool{}, senders: map[int32]*brokerSender{}}, nil
}

// ensure creates the topics that are missing when the connection first sends to them. If a topic vanishes
// later, the connection fails, and the next connection's ensure creates the topic again.
func (c *connection) ensure(ctx context.Context, cfg Config, messages []*sarama.ProducerMessage) error {
	names := c.unknown(messages)
	if len(names) == 0 {
		return nil
	}
	if err := CreateTopics(ctx, cfg, ourTopics(cfg.bare(names))); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range names {
		c.known[name] = true
	}
	return nil
}

func (c *connection) unknown(messages []*sarama.ProducerMessage) (names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range messages {
		if !c.known[m.Topic] && !slices.Contains(names, m.Topic) {
			names = append(names, m.Topic)
		}
	}
	return names
}

// to returns the sender of a broker.
func (c *connection) to(leader *sarama.Broker) *brokerSender {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.senders[leader.ID()]
	if w == nil || w.leader != leader {
		w = &brokerSender{c: c, leader: leader}
		c.senders[leader.ID()] = w
	}
	return w
}

// retire fails all waiting messages: a record must not be on its topic before an earlier one that failed.
func (c *connection) retire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.retired = true
}

func (c *connection) isRetired() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.retired
}

func (c *connection) close() {
	c.users.Wait()
	_ = c.client.Close() // fails only when it is closed twice
}
