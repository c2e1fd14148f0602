package killtest

import (
	"fmt"

	"github.com/IBM/sarama"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/kafkaevent"
)

// said counts, by id, the events on a topic.
func (h *house) said(topic string) (map[string]int, error) {
	cfg, err := h.kafka().Sarama()
	if err != nil {
		return nil, err
	}
	reader, err := sarama.NewClient(h.brokers, cfg)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", topic, err)
	}
	defer func() { _ = reader.Close() }()
	consumer, err := sarama.NewConsumerFromClient(reader)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", topic, err)
	}
	defer func() { _ = consumer.Close() }()
	partitions, err := reader.Partitions(topic)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", topic, err)
	}
	ids := map[string]int{}
	for _, p := range partitions {
		if err := readPartition(reader, consumer, topic, p, ids); err != nil {
			return nil, fmt.Errorf("read %s/%d: %w", topic, p, err)
		}
	}
	return ids, nil
}

func readPartition(c sarama.Client, consumer sarama.Consumer, topic string, p int32, ids map[string]int) error {
	end, err := c.GetOffset(topic, p, sarama.OffsetNewest)
	if err != nil {
		return err
	}
	oldest, err := c.GetOffset(topic, p, sarama.OffsetOldest)
	if err != nil || oldest >= end {
		return err
	}
	from, err := consumer.ConsumePartition(topic, p, oldest)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	for m := range from.Messages() {
		e, err := kafkaevent.Decode(m)
		if err != nil {
			return err
		}
		id := e.ID()
		if e.Type() == jobevent.TypeRejected {
			id = "rejected: " + string(e.Data())
		}
		ids[id]++
		if m.Offset+1 >= end {
			return nil
		}
	}
	return nil
}

// lag is how much of a topic a group has not heard.
func (h *house) lag(group, topic string) (lag int64, err error) {
	cfg, err := h.kafka().Sarama()
	if err != nil {
		return 0, err
	}
	reader, err := sarama.NewClient(h.brokers, cfg)
	if err != nil {
		return 0, fmt.Errorf("measure lag of %s: %w", group, err)
	}
	defer func() { _ = reader.Close() }()
	partitions, err := reader.Partitions(topic)
	if err != nil {
		return 0, fmt.Errorf("measure lag of %s: %w", group, err)
	}
	coordinator, err := reader.Coordinator(group)
	if err != nil {
		return 0, fmt.Errorf("measure lag of %s: %w", group, err)
	}
	ask := &sarama.OffsetFetchRequest{Version: 1, ConsumerGroup: group}
	for _, p := range partitions {
		ask.AddPartition(topic, p)
	}
	answer, err := coordinator.FetchOffset(ask)
	if err != nil {
		return 0, fmt.Errorf("measure lag of %s: %w", group, err)
	}
	for _, p := range partitions {
		end, err := reader.GetOffset(topic, p, sarama.OffsetNewest)
		if err != nil {
			return 0, fmt.Errorf("measure lag of %s: %w", group, err)
		}
		heard := int64(0)
		if at := answer.GetBlock(topic, p); at != nil {
			heard = max(at.Offset, 0) // -1: nothing committed
		}
		lag += end - heard
	}
	return lag, nil
}
