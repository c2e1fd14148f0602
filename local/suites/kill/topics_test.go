package kill

import (
	"fmt"

	"github.com/IBM/sarama"
	"github.com/cloudevents/sdk-go/v2/event"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/kafkaevent"
)

func (h *fixture) admin() (sarama.ClusterAdmin, error) {
	cfg, err := h.kafka().Sarama()
	if err != nil {
		return nil, err
	}
	cfg.Metadata.Full = true // finding the controller needs no topic
	return sarama.NewClusterAdmin(h.brokers, cfg)
}

// published counts, by id, the events of single jobs on topics, with others or alone. No other process reaches the
// broker of jobweaver serve.
func (h *fixture) published(topics ...string) (map[string]int, error) {
	if h.plan.form == paired {
		return map[string]int{}, nil
	}
	cfg, err := h.kafka().Sarama()
	if err != nil {
		return nil, err
	}
	reader, err := sarama.NewClient(h.brokers, cfg)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", topics, err)
	}
	defer func() { _ = reader.Close() }()
	consumer, err := sarama.NewConsumerFromClient(reader)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", topics, err)
	}
	defer func() { _ = consumer.Close() }()
	ids := map[string]int{}
	for _, topic := range topics {
		partitions, err := reader.Partitions(topic)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", topic, err)
		}
		for _, p := range partitions {
			if err := readPartition(reader, consumer, topic, p, ids); err != nil {
				return nil, fmt.Errorf("read %s/%d: %w", topic, p, err)
			}
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
		if err := count(e, ids); err != nil {
			return err
		}
		if m.Offset+1 >= end {
			return nil
		}
	}
	return nil
}

// count counts an event, or each of its items.
func count(e event.Event, ids map[string]int) error {
	switch {
	case e.Type() == jobevent.TypeRejected:
		ids["rejected: "+string(e.Data())]++
	case jobevent.IsPacked(e):
		items, err := jobevent.Unpack(e)
		if err != nil {
			return err
		}
		for _, item := range items {
			if item.Err != nil {
				return item.Err
			}
			ids[item.ID()]++
		}
	default:
		ids[e.ID()]++
	}
	return nil
}

// lag returns how many records of topics a group has not committed.
func (h *fixture) lag(group string, topics ...string) (lag int64, err error) {
	cfg, err := h.kafka().Sarama()
	if err != nil {
		return 0, err
	}
	reader, err := sarama.NewClient(h.brokers, cfg)
	if err != nil {
		return 0, fmt.Errorf("measure lag of %s: %w", group, err)
	}
	defer func() { _ = reader.Close() }()
	coordinator, err := reader.Coordinator(group)
	if err != nil {
		return 0, fmt.Errorf("measure lag of %s: %w", group, err)
	}
	for _, topic := range topics {
		unread, err := lagOf(reader, coordinator, group, topic)
		if err != nil {
			return 0, fmt.Errorf("measure lag of %s: %w", group, err)
		}
		lag += unread
	}
	return lag, nil
}

func lagOf(reader sarama.Client, coordinator *sarama.Broker, group, topic string) (lag int64, err error) {
	partitions, err := reader.Partitions(topic)
	if err != nil {
		return 0, err
	}
	ask := &sarama.OffsetFetchRequest{Version: 1, ConsumerGroup: group}
	for _, p := range partitions {
		ask.AddPartition(topic, p)
	}
	answer, err := coordinator.FetchOffset(ask)
	if err != nil {
		return 0, err
	}
	for _, p := range partitions {
		end, err := reader.GetOffset(topic, p, sarama.OffsetNewest)
		if err != nil {
			return 0, err
		}
		committed := int64(0)
		if at := answer.GetBlock(topic, p); at != nil {
			committed = max(at.Offset, 0) // -1: nothing committed
		}
		lag += max(end-committed, 0) // the topic may have been deleted since
	}
	return lag, nil
}
