package kafkaevent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/IBM/sarama"
)

// Lag is how many records of a topic a function has not yet committed.
type Lag struct {
	Function string // the name of the consumer group without the common prefix
	Topic    string
	Records  int64 // of a compacted topic an upper bound: compaction leaves gaps between offsets
	Members  int   // of the group, whatever topics they are assigned
}

// Lags reads the lag of the installation's consumer groups. It connects with the first read, and again after an error.
type Lags struct {
	cfg Config

	mu    sync.Mutex
	admin sarama.ClusterAdmin // nil: not connected

	closed bool
}

// NewLags returns a reader; nothing connects yet.
func NewLags(cfg Config) *Lags { return &Lags{cfg: cfg} }

// Close disconnects. A read that is under way ends first, and none connects after it.
func (l *Lags) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.disconnect()
	l.closed = true
}

func (l *Lags) disconnect() {
	if l.admin != nil {
		_ = l.admin.Close() // and the client; fails only when it is closed twice
		l.admin = nil
	}
}

// Read returns the lag of each topic that a group subscribes to or has committed, by function and topic. Groups that
// the user may not describe are left out.
func (l *Lags) Read(ctx context.Context) (lags []Lag, err error) {
	err = bounded(ctx, func() error {
		if !l.mu.TryLock() {
			return errStillAsking
		}
		defer l.mu.Unlock()
		read, err := l.read()
		if err != nil {
			l.disconnect()
			return err
		}
		lags = read
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read consumer lag: %w", err) // lags may be written later
	}
	return lags, nil
}

func (l *Lags) read() ([]Lag, error) {
	if l.closed { // a Read whose context ended may come to this after Close
		return nil, sarama.ErrClosedClient
	}
	if l.admin == nil {
		client, err := openClient(l.cfg, func(s *sarama.Config) {
			s.Metadata.Full = true // the brokers and the controller are metadata of no topic
			s.Metadata.RefreshFrequency = 0
		})
		if err != nil {
			return nil, err
		}
		if l.admin, err = sarama.NewClusterAdminFromClient(client); err != nil {
			return nil, errors.Join(err, client.Close())
		}
	}
	groups, err := l.cfg.readGroups(l.admin)
	if err != nil {
		return nil, err
	}
	oldest, newest, err := ends(l.admin, groups)
	if err != nil {
		return nil, err
	}
	var lags []Lag
	for _, group := range groups {
		for topic, committed := range group.committed {
			lag := Lag{Function: l.cfg.functionOf(group.name), Topic: l.cfg.bareName(topic), Members: group.members}
			for id, end := range newest[topic] {
				at, known := committed[id]
				if !known {
					at = -1
				}
				lag.Records += max(end-max(at, oldest[topic][id]), 0)
			}
			lags = append(lags, lag)
		}
	}
	slices.SortFunc(lags, func(a, b Lag) int {
		return cmp.Or(cmp.Compare(a.Function, b.Function), cmp.Compare(a.Topic, b.Topic))
	})
	return lags, nil
}

// groupOffsets has the committed offsets of a group, by topic and partition.
type groupOffsets struct {
	name      string
	members   int
	committed map[string]map[int32]int64
}

func (c Config) readGroups(admin sarama.ClusterAdmin) ([]groupOffsets, error) {
	all, err := admin.ListConsumerGroups()
	if err != nil {
		return nil, fmt.Errorf("list consumer groups: %w", err)
	}
	var names []string
	for name := range all {
		if c.functionOf(name) != "" {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	described, err := admin.DescribeConsumerGroups(names)
	if err != nil {
		return nil, fmt.Errorf("describe consumer groups: %w", err)
	}
	groups := make([]groupOffsets, len(described))
	for i, of := range described {
		groups[i] = groupOffsets{name: of.GroupId, members: len(of.Members), committed: subscribed(of)}
		answer, err := admin.ListConsumerGroupOffsets(of.GroupId, nil)
		if err != nil {
			return nil, fmt.Errorf("read offsets of group %s: %w", of.GroupId, err)
		}
		for topic, blocks := range answer.Blocks {
			if groups[i].committed[topic] == nil {
				groups[i].committed[topic] = map[int32]int64{}
			}
			for id, block := range blocks {
				groups[i].committed[topic][id] = block.Offset
			}
		}
	}
	return groups, nil
}

// subscribed returns the topics that members consume, also without committed offsets.
func subscribed(group *sarama.GroupDescription) map[string]map[int32]int64 {
	topics := map[string]map[int32]int64{}
	for _, member := range group.Members {
		metadata, err := member.GetMemberMetadata()
		if err != nil || metadata == nil {
			continue // of a client that speaks another protocol; its commits have the topics
		}
		for _, topic := range metadata.Topics {
			topics[topic] = map[int32]int64{}
		}
	}
	return topics
}

// ends returns the first offset and the one after the last of each partition of the groups' topics.
func ends(admin sarama.ClusterAdmin, groups []groupOffsets) (oldest, newest map[string]map[int32]int64, err error) {
	seen := map[string]bool{}
	for _, group := range groups {
		for topic := range group.committed {
			seen[topic] = true
		}
	}
	if len(seen) == 0 {
		return nil, nil, nil
	}
	topics := make([]string, 0, len(seen))
	for topic := range seen {
		topics = append(topics, topic)
	}
	described, err := admin.DescribeTopics(topics)
	if err != nil {
		return nil, nil, fmt.Errorf("describe topics: %w", err)
	}
	if oldest, err = offsets(admin, described, sarama.OffsetOldest); err != nil {
		return nil, nil, err
	}
	newest, err = offsets(admin, described, sarama.OffsetNewest)
	return oldest, newest, err
}

// offsets leaves out deleted topics, and partitions without a leader.
func offsets(admin sarama.ClusterAdmin, topics []*sarama.TopicMetadata, at int64) (map[string]map[int32]int64, error) {
	ask, found := map[string]map[int32]int64{}, map[string]map[int32]int64{}
	for _, topic := range topics {
		if errors.Is(topic.Err, sarama.ErrUnknownTopicOrPartition) {
			continue
		}
		if !errors.Is(topic.Err, sarama.ErrNoError) {
			return nil, fmt.Errorf("describe topic %s: %w", topic.Name, topic.Err)
		}
		ask[topic.Name], found[topic.Name] = map[int32]int64{}, map[int32]int64{}
		for _, partition := range topic.Partitions {
			if errors.Is(partition.Err, sarama.ErrNoError) {
				ask[topic.Name][partition.ID] = at
			}
		}
	}
	answers, err := admin.ListOffsets(ask, nil)
	if err != nil {
		return nil, fmt.Errorf("list offsets: %w", err)
	}
	for topic, partitions := range answers {
		for id, answer := range partitions {
			if answer.Err != nil && !errors.Is(answer.Err, sarama.ErrNoError) {
				return nil, fmt.Errorf("list offsets of %s: %w", topic, answer.Err)
			}
			found[topic][id] = answer.Offset
		}
	}
	return found, nil
}
