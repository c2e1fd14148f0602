package kafkaevent

import (
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

// Difference is how a topic differs from what JobWeaver needs.
type Difference struct {
	Topic string
	Is    string // as in cleanup.policy=delete, needed is compact: statuses would be lost
	// Harmful: events would be lost, refused or take effect twice. Otherwise the topic works, with fewer workers or less
	// safety.
	Harmful bool
}

// comparison compares one topic with what is needed.
type comparison struct {
	topic jobevent.Topic
	found []Difference
}

func (c *comparison) note(harmful bool, format string, args ...any) {
	c.found = append(c.found, Difference{Topic: c.topic.Name, Is: fmt.Sprintf(format, args...), Harmful: harmful})
}

// CompareTopics returns how existing topics differ from what JobWeaver needs. It needs the rights Describe and
// DescribeConfigs on them.
func CompareTopics(ctx context.Context, cfg Config, topics []jobevent.Topic) (all []Difference, err error) {
	err = bounded(ctx, func() error {
		client, err := openClient(cfg, func(s *sarama.Config) { s.Metadata.Full = true })
		if err != nil {
			return err
		}
		admin, err := sarama.NewClusterAdminFromClient(client)
		if err != nil {
			return errors.Join(err, client.Close())
		}
		defer func() { _ = admin.Close() }() // and the client
		all, err = cfg.compareTopics(ctx, admin, topics, len(client.Brokers()))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("compare topics: %w", err)
	}
	return all, nil
}

// MissingTopics returns those of the topics that the brokers do not have, and asks them once. It needs the right
// Describe on them.
func MissingTopics(ctx context.Context, cfg Config, topics []jobevent.Topic) (missing []jobevent.Topic, err error) {
	err = bounded(ctx, func() error {
		client, err := openClient(cfg, func(s *sarama.Config) {
			s.Metadata.Full, s.Metadata.Retry.Max = true, 0
		})
		if err != nil {
			return err
		}
		admin, err := sarama.NewClusterAdminFromClient(client)
		if err != nil {
			return errors.Join(err, client.Close())
		}
		defer func() { _ = admin.Close() }() // and the client
		missing, err = missingTopics(admin, topics)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look for topics: %w", err)
	}
	return missing, nil
}

func (c Config) compareTopics(
	ctx context.Context, admin sarama.ClusterAdmin, topics []jobevent.Topic, brokers int,
) (all []Difference, err error) {
	for _, topic := range topics {
		one := comparison{topic: topic}
		name := c.AtBrokers(topic.Name)
		found, err := readTopic(ctx, admin, name)
		if err != nil {
			return nil, fmt.Errorf("describe topic %s: %w", name, err)
		}
		one.partitions(c, found, brokers)
		settings, err := readSettings(ctx, admin, name)
		switch {
		case errors.Is(err, sarama.ErrTopicAuthorizationFailed):
			one.note(false, "its settings cannot be compared without the right DescribeConfigs")
		case err != nil:
			return nil, fmt.Errorf("read settings of topic %s: %w", name, err)
		default:
			one.settings(settings)
		}
		all = append(all, one.found...)
	}
	return all, nil
}

func (c *comparison) partitions(cfg Config, m *sarama.TopicMetadata, brokers int) {
	if n := len(m.Partitions); n < int(c.topic.Partitions) {
		c.note(false, "partitions=%d, needed are %d: so many members of a group can share its work", n, c.topic.Partitions)
	}
	if len(m.Partitions) == 0 {
		return
	}
	replicas := len(m.Partitions[0].Replicas)
	switch {
	case cfg.ReplicationFactor > 0 && replicas < int(cfg.ReplicationFactor):
		c.note(true, "replication factor %d, KAFKA_REPLICATION_FACTOR is %d", replicas, cfg.ReplicationFactor)
	case replicas == 1 && brokers > 1:
		c.note(false, "replication factor 1 on %d brokers: its partitions are away whenever their broker is", brokers)
	}
}

func (c *comparison) settings(is map[string]string) {
	policy := "delete"
	if c.topic.Compacted {
		policy = "compact"
	}
	if is["cleanup.policy"] != policy {
		why := "events would be lost"
		if c.topic.Compacted {
			why = "the last status of a job would be lost"
		}
		c.note(true, "cleanup.policy=%s, needed is %s: %s", is["cleanup.policy"], policy, why)
	}
	if most, err := strconv.Atoi(is["max.message.bytes"]); err == nil && most < topicLimit {
		c.note(true, "max.message.bytes=%d, needed are %d: the brokers would refuse large events", most, topicLimit)
	}
	if c.topic.Compacted || !strings.Contains(is["cleanup.policy"], "delete") {
		return
	}
	keeping := Keeping{Policy: is["cleanup.policy"], Retention: age(is["retention.ms"]), Segment: age(is["segment.ms"])}
	if keeping.Gone() > jobevent.RecordsGone {
		c.note(true, "retention.ms=%s segment.ms=%s, at most are %d and %d: old records could take effect again",
			is["retention.ms"], is["segment.ms"], jobevent.MaxRetention.Milliseconds(), jobevent.SegmentAge.Milliseconds())
	}
	if keeping.Retention < c.topic.Retention {
		c.note(keeping.Retention < leastRetention,
			"retention.ms=%s, JobWeaver sets %d: events that wait longer are published again",
			is["retention.ms"], c.topic.Retention.Milliseconds())
	}
}

// leastRetention is a retention below which events are deleted during an ordinary outage of their consumers.
const leastRetention = time.Hour

// readTopic reads the partitions of a topic. A broker may not know a new topic yet: it answers then with none.
func readTopic(ctx context.Context, admin sarama.ClusterAdmin, topic string) (*sarama.TopicMetadata, error) {
	for {
		answers, err := admin.DescribeTopics([]string{topic})
		if err == nil && answers[0].Err != sarama.ErrNoError && len(answers[0].Partitions) == 0 {
			err = answers[0].Err
		}
		if errors.Is(err, sarama.ErrUnknownTopicOrPartition) && retry.Pause(ctx, 50*time.Millisecond) {
			continue
		}
		if err != nil {
			return nil, err
		}
		return answers[0], nil
	}
}

// readSettings reads the settings of a topic. A broker may not know a new topic yet.
func readSettings(ctx context.Context, admin sarama.ClusterAdmin, topic string) (map[string]string, error) {
	for {
		answers, err := admin.DescribeConfigs([]*sarama.ConfigResource{{
			Type: sarama.TopicResource, Name: topic,
			ConfigNames: []string{"cleanup.policy", "retention.ms", "segment.ms", "max.message.bytes"},
		}}, sarama.DescribeConfigsOptions{})
		if err == nil && answers[0].ErrorCode != sarama.ErrNoError {
			err = answers[0].ErrorCode
		}
		if errors.Is(err, sarama.ErrUnknownTopicOrPartition) && retry.Pause(ctx, 50*time.Millisecond) {
			continue
		}
		if err != nil {
			return nil, err
		}
		settings := map[string]string{}
		for _, entry := range answers[0].Configs {
			settings[entry.Name] = entry.Value
		}
		return settings, nil
	}
}

// Harmful reports whether one of the differences is.
func Harmful(all []Difference) bool {
	return slices.ContainsFunc(all, func(d Difference) bool { return d.Harmful })
}
