package rig

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/IBM/sarama"

	"github.com/jobweaver/jobweaver/shared/kafkaevent"
)

// Clear removes all topics and groups, so that the next installation finds an empty but warm broker.
func (b *Broker) Clear() (err error) {
	cfg, err := kafkaevent.Config{Brokers: []string{b.Address}, ReplicationFactor: 1}.Sarama()
	if err != nil {
		return fmt.Errorf("clear broker: %w", err)
	}
	cfg.Metadata.Full = true // an empty broker has no topics by which metadata could be requested
	admin, err := sarama.NewClusterAdmin([]string{b.Address}, cfg)
	if err != nil {
		return fmt.Errorf("clear broker: %w", err)
	}
	defer func() { err = errors.Join(err, admin.Close()) }()
	groups, err := admin.ListConsumerGroups()
	if err != nil {
		return fmt.Errorf("list groups: %w", err)
	}
	for group := range maps.Keys(groups) {
		if err := admin.DeleteConsumerGroup(group); err != nil {
			return fmt.Errorf("delete group %s: %w", group, err)
		}
	}
	topics, err := admin.ListTopics()
	if err != nil {
		return fmt.Errorf("list topics: %w", err)
	}
	for _, topic := range slices.Sorted(maps.Keys(topics)) {
		if strings.HasPrefix(topic, "__") {
			continue
		}
		if err := admin.DeleteTopic(topic); err != nil {
			return fmt.Errorf("delete topic %s: %w", topic, err)
		}
	}
	return nil
}
