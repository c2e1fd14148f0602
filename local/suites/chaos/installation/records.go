package installation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"
	"github.com/cloudevents/sdk-go/v2/event"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/kafkaevent"
)

// CountRecords adds the events that are on the run-job topics now to those that a wipe has removed. Nothing else
// reaches the broker in a jobweaver serve.
func (h *Installation) CountRecords() error {
	if h.Paired {
		return nil
	}
	cfg, err := h.Kafka().Sarama()
	if err != nil {
		return err
	}
	client, err := sarama.NewClient(h.Bootstrap(), cfg)
	if err != nil {
		return fmt.Errorf("count records: %w", err)
	}
	defer func() { _ = client.Close() }()
	consumer, err := sarama.NewConsumerFromClient(client)
	if err != nil {
		return fmt.Errorf("count records: %w", err)
	}
	defer func() { _ = consumer.Close() }()
	found := map[string]int{}
	for _, queue := range Queues {
		topic := jobevent.RunTopic(queue)
		partitions, err := client.Partitions(topic)
		if err != nil {
			return fmt.Errorf("count records of %s: %w", topic, err)
		}
		for _, p := range partitions {
			if err := readPartition(client, consumer, topic, p, found); err != nil {
				return fmt.Errorf("count records of %s/%d: %w", topic, p, err)
			}
		}
	}
	if h.Records == nil {
		h.Records = map[string]int{}
	}
	for id, n := range found {
		h.Records[id] += n
	}
	return nil
}

func readPartition(client sarama.Client, consumer sarama.Consumer, topic string, p int32, into map[string]int) error {
	end, err := client.GetOffset(topic, p, sarama.OffsetNewest)
	if err != nil {
		return err
	}
	oldest, err := client.GetOffset(topic, p, sarama.OffsetOldest)
	if err != nil || oldest >= end {
		return err
	}
	from, err := consumer.ConsumePartition(topic, p, oldest)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	patience := time.After(20 * time.Second)
	for {
		select {
		case m, open := <-from.Messages():
			if !open {
				return errors.New("the consumer has ended")
			}
			e, err := kafkaevent.Decode(m)
			if err != nil {
				return err
			}
			for _, id := range idsOf(e) {
				into[id]++
			}
			if m.Offset+1 >= end {
				return nil
			}
		case err := <-from.Errors():
			return err
		case <-patience:
			return context.DeadlineExceeded
		}
	}
}

// idsOf returns the ids of the items in an event.
func idsOf(e event.Event) (ids []string) {
	items, _ := jobevent.Unpack(e) // an unreadable event has none
	for _, it := range items {
		if it.Err == nil {
			ids = append(ids, it.ID())
		}
	}
	return ids
}
