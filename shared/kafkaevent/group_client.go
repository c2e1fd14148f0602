package kafkaevent

import (
	"fmt"
	"strings"
	"time"

	"github.com/IBM/sarama"
)

// groupClient is a sarama client that talks to the group's coordinator over connections of its own,
// as Java's consumer does. A broker answers one request of a connection at a time, so on a shared
// one heartbeats, joins and commits would wait behind every long poll.
type groupClient struct {
	sarama.Client
	coordination sarama.Client
}

func openGroupClient(cfg Config) (*groupClient, error) {
	fetching, err := openClient(cfg, func(*sarama.Config) {})
	if err != nil {
		return nil, err
	}
	coordination, err := openClient(cfg, func(s *sarama.Config) {
		// The answer to a join comes when every member has joined.
		s.Net.ReadTimeout = rebalanceTimeout + 15*time.Second
	})
	if err != nil {
		_ = fetching.Close()
		return nil, err
	}
	return &groupClient{Client: fetching, coordination: coordination}, nil
}

func openClient(cfg Config, change func(*sarama.Config)) (sarama.Client, error) {
	s, err := cfg.Sarama()
	if err != nil {
		return nil, err
	}
	change(s)
	client, err := sarama.NewClient(cfg.addrs(), s)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", strings.Join(cfg.addrs(), ","), err)
	}
	return client, nil
}

// Coordinator overrides the fetching client's.
func (c *groupClient) Coordinator(group string) (*sarama.Broker, error) {
	return c.coordination.Coordinator(group)
}

// RefreshCoordinator overrides the fetching client's.
func (c *groupClient) RefreshCoordinator(group string) error {
	return c.coordination.RefreshCoordinator(group)
}

func (c *groupClient) close() {
	_ = c.Client.Close() // closing can only fail when closed before
	_ = c.coordination.Close()
}
