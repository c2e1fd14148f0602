package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/IBM/sarama"

	"github.com/jobweaver/jobweaver/local/suites/chaos/installation"
	"github.com/jobweaver/jobweaver/local/suites/chaos/proxy"
	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// Faults of the brokers. After a minute without a status reconcile asks about a job: hence the bound after a wipe.
var (
	kafkaFaults = []*kind{
		{name: "kill a broker", area: areaKafka, hold: 5 * time.Second, strike: killBrokers(1)},
		{name: "kill two brokers", area: areaKafka, hold: 12 * time.Second, bound: 90 * time.Second, strike: killBrokers(2)},
		{name: "kill all brokers", area: areaKafka, hold: 8 * time.Second, bound: 90 * time.Second, strike: killBrokers(3)},
		{name: "freeze a broker", area: areaKafka, hold: 15 * time.Second, strike: freezeBroker},
		{name: "wipe all topics", area: areaKafka, bound: 120 * time.Second, strike: wipeTopics},
		{name: "brokers cut off from each other", area: areaKafka, hold: 10 * time.Second, strike: cutBrokers},
	}
	fullKafka = &kind{name: "disk of a broker full", area: areaKafka, hold: 8 * time.Second, strike: fillBroker}
)

func killBrokers(n int) func(*chaos, *fault) (func() error, error) {
	return func(c *chaos, f *fault) (func() error, error) {
		var list []*installation.Broker
		var errs []error
		for _, i := range c.rnd.Perm(installation.Brokers)[:n] {
			b := c.system.Brokers[i]
			list = append(list, b)
			f.hits("%s", b.Name)
			errs = append(errs, b.Kill())
		}
		return func() error { return c.system.StartBrokers(c.ctx, list...) }, errors.Join(errs...)
	}
}

func freezeBroker(c *chaos, f *fault) (func() error, error) {
	b := c.system.Brokers[c.rnd.IntN(installation.Brokers)]
	f.hits("%s", b.Name)
	return b.Freeze()
}

// wipeTopics deletes all records of the brokers, and creates the topics anew.
func wipeTopics(c *chaos, _ *fault) (func() error, error) {
	return func() error { return c.system.CreateTopics(c.ctx) }, deleteTopics(c.ctx, c.system)
}

// deleteTopics counts the records of the run-job topics, and deletes all topics.
func deleteTopics(ctx context.Context, h *installation.Installation) error {
	if err := h.CountRecords(); err != nil {
		h.Log(fmt.Sprintf("! the records before a wipe are not counted: %v", err)) // two faults at a time
	}
	cfg, err := h.Kafka().Sarama()
	if err != nil {
		return err
	}
	cfg.Metadata.Full = true // finding the controller needs no topic
	return installation.Within(ctx, time.Minute, func(context.Context) error {
		admin, err := sarama.NewClusterAdmin(h.Bootstrap(), cfg)
		if err != nil {
			return fmt.Errorf("delete topics: %w", err)
		}
		defer func() { _ = admin.Close() }()
		for _, topic := range jobevent.Topics(installation.Queues) {
			if err := admin.DeleteTopic(topic.Name); err != nil && !errors.Is(err, sarama.ErrUnknownTopicOrPartition) {
				return fmt.Errorf("delete topic %s: %w", topic.Name, err)
			}
		}
		return nil
	})
}

// cutBrokers cuts one broker off from the records of the others, both ways. It still reaches the controllers.
func cutBrokers(c *chaos, f *fault) (func() error, error) {
	name := c.system.Brokers[c.rnd.IntN(installation.Brokers)].Name
	f.hits("%s", name)
	var links []installation.Pair
	for _, other := range c.system.Brokers {
		if other.Name != name {
			links = append(links, installation.Pair{From: name, To: other.Name}, installation.Pair{From: other.Name, To: name})
		}
	}
	c.system.Net.Set(stall, links...)
	return func() error {
		c.system.Net.Set(proxy.Fault{}, links...)
		return nil
	}, nil
}

// fillBroker fills the small disk of one broker. A broker without room for its logs ends.
func fillBroker(c *chaos, f *fault) (func() error, error) {
	b := c.system.Brokers[installation.Brokers-1]
	f.hits("%s", b.Name)
	empty, err := fill(filepath.Dir(b.Data))
	return func() error {
		return errors.Join(empty(), b.Kill(), c.system.StartBrokers(c.ctx, b))
	}, err
}
