package kafkaevent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/IBM/sarama"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/retry"
)

// groupsOf is the prefix of the names of JobWeaver's consumer groups.
const groupsOf = "jobweaver-"

// functionOf returns the name of a group of this installation without the prefixes; empty: it is another's.
func (c Config) functionOf(group string) string {
	name, is := c.Installation.FromKafka(group)
	if function, ours := strings.CutPrefix(name, groupsOf); is && ours {
		return function
	}
	return ""
}

// EmptyTopics deletes the topics, and those of further queues, with the offsets of their groups, and creates them anew.
// It refuses while a function consumes: the function would publish to the new topics.
func EmptyTopics(ctx context.Context, cfg Config, topics []jobevent.Topic) error {
	err := bounded(ctx, func() error {
		client, err := openClient(cfg, func(s *sarama.Config) { s.Metadata.Full = true })
		if err != nil {
			return fmt.Errorf("empty topics: %w", err)
		}
		admin, err := sarama.NewClusterAdminFromClient(client)
		if err != nil {
			return fmt.Errorf("empty topics: %w", errors.Join(err, client.Close()))
		}
		defer func() { _ = admin.Close() }() // and the client
		if err := cfg.forgetGroups(admin); err != nil {
			return err
		}
		topics, err = cfg.withQueues(admin, topics)
		if err != nil {
			return err
		}
		return deleteTopics(ctx, admin, cfg.own(topics))
	})
	if err != nil {
		return err
	}
	return CreateTopics(ctx, cfg, topics)
}

// forgetGroups deletes the groups of the installation, unless one of them has members.
func (c Config) forgetGroups(admin sarama.ClusterAdmin) error {
	groups, err := admin.ListConsumerGroups()
	if err != nil {
		return fmt.Errorf("list consumer groups: %w", err)
	}
	ours := slices.DeleteFunc(slices.Collect(maps.Keys(groups)), func(group string) bool {
		return c.functionOf(group) == ""
	})
	found, err := admin.DescribeConsumerGroups(ours)
	if err != nil {
		return fmt.Errorf("describe consumer groups: %w", err)
	}
	for _, group := range found {
		if len(group.Members) > 0 {
			return fmt.Errorf("consumer group %s has members: stop all functions first", group.GroupId)
		}
	}
	for _, group := range ours {
		err := admin.DeleteConsumerGroup(group)
		if err != nil && !errors.Is(err, sarama.ErrGroupIDNotFound) {
			return fmt.Errorf("delete consumer group %s: %w", group, err)
		}
	}
	return nil
}

// withQueues adds the run-job topics of queues that are not among the topics, and gives those of all queues as many
// partitions as they have.
func (c Config) withQueues(admin sarama.ClusterAdmin, topics []jobevent.Topic) ([]jobevent.Topic, error) {
	there, err := admin.ListTopics()
	if err != nil {
		return nil, fmt.Errorf("list topics: %w", err)
	}
	names := make([]string, 0, len(there))
	for name := range there {
		names = append(names, name)
	}
	topics = slices.Clone(topics)
	for _, topic := range ourTopics(c.bare(names)) {
		if !slices.ContainsFunc(topics, func(t jobevent.Topic) bool { return t.Name == topic.Name }) {
			topics = append(topics, topic)
		}
	}
	for i, topic := range topics {
		if topic.Name == jobevent.TopicRun || strings.HasPrefix(topic.Name, jobevent.TopicRun+".") {
			topics[i].Partitions = max(topic.Partitions, there[c.AtBrokers(topic.Name)].NumPartitions) // it may have grown
		}
	}
	return topics, nil
}

func deleteTopics(ctx context.Context, admin sarama.ClusterAdmin, topics []jobevent.Topic) error {
	for _, topic := range topics {
		err := admin.DeleteTopic(topic.Name)
		if err != nil && !errors.Is(err, sarama.ErrUnknownTopicOrPartition) {
			return fmt.Errorf("delete topic %s: %w", topic.Name, err)
		}
	}
	for {
		missing, err := missingTopics(admin, topics)
		if err != nil || len(missing) == len(topics) {
			return err
		}
		if !retry.Pause(ctx, 20*time.Millisecond) {
			return fmt.Errorf("delete topics: some are still there: %w", ctx.Err())
		}
	}
}
