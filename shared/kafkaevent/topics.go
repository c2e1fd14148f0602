package kafkaevent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/IBM/sarama"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/retry"
)

// CreateTopics creates the missing topics, does not change existing ones, and returns when all can be used.
// Several processes may call it at once.
func CreateTopics(ctx context.Context, cfg Config, topics []jobevent.Topic) error {
	if len(topics) == 0 {
		return nil
	}
	return bounded(ctx, func() error {
		// The controller can be found without metadata of any topic.
		client, err := openClient(cfg, func(s *sarama.Config) { s.Metadata.Full = true })
		if err != nil {
			return fmt.Errorf("create topics: %w", err)
		}
		admin, err := sarama.NewClusterAdminFromClient(client)
		if err != nil {
			return fmt.Errorf("create topics: %w", errors.Join(err, client.Close()))
		}
		defer func() { _ = admin.Close() }() // and the client
		return cfg.createTopics(ctx, admin, cfg.own(topics))
	})
}

func (c Config) createTopics(ctx context.Context, admin sarama.ClusterAdmin, topics []jobevent.Topic) error {
	missing, err := missingTopics(admin, topics)
	if err != nil {
		return err
	}
	for _, topic := range missing {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		err := admin.CreateTopic(topic.Name, c.topicDetail(topic), false)
		if err != nil && !errors.Is(err, sarama.ErrTopicAlreadyExists) {
			return fmt.Errorf("create topic %s: %w", topic.Name, err)
		}
	}
	// The controller knows the topics now, and the brokers a moment later.
	for len(missing) > 0 {
		if missing, err = missingTopics(admin, missing); err != nil {
			return err
		}
		if len(missing) > 0 && !retry.Pause(ctx, 20*time.Millisecond) {
			return fmt.Errorf("create topics: %s never appeared: %w", missing[0].Name, ctx.Err())
		}
	}
	return nil
}

// DeleteTopic deletes a topic, with the offsets of a consumer group that has no members, and returns when it is gone.
func DeleteTopic(ctx context.Context, cfg Config, topic, group string) error {
	return bounded(ctx, func() error {
		client, err := openClient(cfg, func(s *sarama.Config) { s.Metadata.Full = true })
		if err != nil {
			return fmt.Errorf("delete topic %s: %w", topic, err)
		}
		admin, err := sarama.NewClusterAdminFromClient(client)
		if err != nil {
			return fmt.Errorf("delete topic %s: %w", topic, errors.Join(err, client.Close()))
		}
		defer func() { _ = admin.Close() }() // and the client
		err = admin.DeleteConsumerGroup(cfg.AtBrokers(group))
		if err != nil && !errors.Is(err, sarama.ErrGroupIDNotFound) && !errors.Is(err, sarama.ErrNonEmptyGroup) {
			return fmt.Errorf("delete consumer group %s: %w", group, err)
		}
		return deleteTopics(ctx, admin, []jobevent.Topic{{Name: cfg.AtBrokers(topic)}})
	})
}

// Queues returns the queues that have a topic.
func Queues(ctx context.Context, cfg Config) (queues []string, err error) {
	err = bounded(ctx, func() error {
		client, err := openClient(cfg, func(s *sarama.Config) { s.Metadata.Full = true })
		if err != nil {
			return err
		}
		defer func() { _ = client.Close() }()
		names, err := client.Topics()
		queues = queuesOf(cfg.bare(names))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list the topics of queues: %w", err)
	}
	return queues, nil
}

// GrowTopics gives topics the partitions that they lack. Consumers and producers notice within a minute. A topic cannot
// lose partitions: one that has more keeps them.
func GrowTopics(ctx context.Context, cfg Config, topics []jobevent.Topic) error {
	return bounded(ctx, func() error {
		client, err := openClient(cfg, func(s *sarama.Config) { s.Metadata.Full = true })
		if err != nil {
			return fmt.Errorf("grow topics: %w", err)
		}
		admin, err := sarama.NewClusterAdminFromClient(client)
		if err != nil {
			return fmt.Errorf("grow topics: %w", errors.Join(err, client.Close()))
		}
		defer func() { _ = admin.Close() }() // and the client
		for _, topic := range cfg.own(topics) {
			has, err := client.Partitions(topic.Name)
			if err != nil {
				return fmt.Errorf("count partitions of topic %s: %w", topic.Name, err)
			}
			if len(has) >= int(topic.Partitions) {
				continue
			}
			// A broker may not know yet that the topic has grown: then the controller refuses what it has done before.
			err = admin.CreatePartitions(topic.Name, topic.Partitions, nil, false)
			if err != nil && !errors.Is(err, sarama.ErrInvalidPartitions) {
				return fmt.Errorf("grow topic %s to %d partitions: %w", topic.Name, topic.Partitions, err)
			}
		}
		return nil
	})
}

// missingTopics returns those of the topics that the brokers do not have. It needs the right Describe on each: without
// it the brokers answer alike for topics that are there and for others.
func missingTopics(admin sarama.ClusterAdmin, topics []jobevent.Topic) ([]jobevent.Topic, error) {
	names := make([]string, len(topics))
	for i, topic := range topics {
		names[i] = topic.Name
	}
	found, err := admin.DescribeTopics(names)
	if err != nil {
		return nil, fmt.Errorf("describe topics: %w", err)
	}
	there := map[string]bool{}
	for _, m := range found {
		if errors.Is(m.Err, sarama.ErrTopicAuthorizationFailed) {
			return nil, fmt.Errorf("topic %s: whether it is there cannot be seen without the right Describe: %w", m.Name, m.Err)
		}
		there[m.Name] = !errors.Is(m.Err, sarama.ErrUnknownTopicOrPartition)
	}
	return slices.DeleteFunc(slices.Clone(topics), func(topic jobevent.Topic) bool { return there[topic.Name] }), nil
}

func (c Config) topicDetail(t jobevent.Topic) *sarama.TopicDetail {
	entry := func(s string) *string { return &s }
	detail := &sarama.TopicDetail{
		NumPartitions:     t.Partitions,
		ReplicationFactor: cmp.Or(c.ReplicationFactor, BrokersDefault),
		ConfigEntries:     map[string]*string{"max.message.bytes": entry(strconv.Itoa(topicLimit))},
	}
	if t.Compacted {
		detail.ConfigEntries["cleanup.policy"] = entry("compact")
	} else {
		detail.ConfigEntries["cleanup.policy"] = entry("delete")
		detail.ConfigEntries["retention.ms"] = entry(strconv.FormatInt(t.Retention.Milliseconds(), 10))
		// A record is deleted with its segment: rows that fence old records must outlive both.
		segment := min(t.Retention, jobevent.SegmentAge)
		detail.ConfigEntries["segment.ms"] = entry(strconv.FormatInt(segment.Milliseconds(), 10))
	}
	return detail
}

// ourTopics returns those of the named topics that JobWeaver can create.
func ourTopics(names []string) []jobevent.Topic {
	return slices.DeleteFunc(jobevent.Topics(queuesOf(names)), func(t jobevent.Topic) bool {
		return !slices.Contains(names, t.Name)
	})
}

// queuesOf returns the queues whose topics are among the named ones.
func queuesOf(names []string) (queues []string) {
	for _, name := range names {
		if queue, ok := strings.CutPrefix(name, jobevent.TopicRun+"."); ok {
			queues = append(queues, queue)
		}
	}
	return queues
}

// bounded returns when do does or when ctx ends, whichever comes first: sarama's calls take no
// context. If do still runs then, it ends by sarama's own timeouts.
func bounded(ctx context.Context, do func() error) error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
