package localkafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kfake"
)

const (
	trimEvery = 10 * time.Second
	// lookBack is how many records of a partition are kept after all groups have read them.
	lookBack = 10_000
	// trimAtLeast prevents trimming a quiet partition one record at a time.
	trimAtLeast = 1_000
)

// trimmer deletes the records that all consumer groups of a topic have read. The embedded broker keeps an entry in
// memory for each batch that it has, and reads a compacted topic as a whole to compact it: a week's retention,
// harmless on a cluster, would be gigabytes of memory here, in a busy installation.
type trimmer struct {
	cluster  *kfake.Cluster
	lookBack int64
	stop     context.CancelFunc
	done     chan struct{}
}

func startTrimmer(cluster *kfake.Cluster) *trimmer {
	ctx, stop := context.WithCancel(context.Background())
	t := &trimmer{cluster: cluster, lookBack: lookBack, stop: stop, done: make(chan struct{})}
	go t.run(ctx)
	return t
}

func (t *trimmer) close() {
	t.stop()
	<-t.done
}

func (t *trimmer) run(ctx context.Context) {
	defer close(t.done)
	tick := time.NewTicker(trimEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if err := t.pass(); err != nil && ctx.Err() == nil {
				slog.WarnContext(ctx, "embedded broker: trim", "error", err)
			}
		case <-ctx.Done():
			return
		}
	}
}

// pass trims every topic that has groups.
func (t *trimmer) pass() error {
	names, err := groupNames(t.cluster.ListenAddrs())
	if err != nil {
		return err
	}
	var groups []*kfake.GroupInfo
	topics := map[string]bool{}
	for _, name := range names {
		g := t.cluster.GroupInfo(name)
		if g == nil {
			continue
		}
		groups = append(groups, g)
		for topic := range g.Commits {
			topics[topic] = true
		}
	}
	var failed error
	for topic := range topics {
		for _, p := range t.cluster.PartitionInfos(topic) {
			to := min(readByAll(groups, topic, p), p.HighWatermark-t.lookBack)
			if to-p.LogStartOffset >= trimAtLeast {
				failed = errors.Join(failed, t.cluster.DeleteRecords(topic, p.Partition, to))
			}
		}
	}
	return failed
}

// readByAll returns the offset before which every group of a topic has read a partition.
func readByAll(groups []*kfake.GroupInfo, topic string, p *kfake.PartitionInfo) int64 {
	to := p.HighWatermark
	for _, g := range groups {
		commit, isKnown := g.Commits[topic][p.Partition]
		switch {
		case isKnown:
			to = min(to, commit.Offset)
		case concerns(g, topic):
			return p.LogStartOffset // the group has not begun
		}
	}
	return to
}

func concerns(g *kfake.GroupInfo, topic string) bool {
	if len(g.Commits[topic]) > 0 {
		return true
	}
	return slices.ContainsFunc(g.Members, func(m kfake.GroupMember) bool {
		return slices.Contains(m.SubscribedTopics, topic)
	})
}

// groupNames asks over the wire: the broker's own API returns only the names of groups.
func groupNames(address []string) (names []string, err error) {
	b := sarama.NewBroker(address[0])
	cfg := sarama.NewConfig()
	cfg.Version = sarama.V2_8_0_0
	if err := b.Open(cfg); err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	answer, err := b.ListGroups(&sarama.ListGroupsRequest{})
	if err != nil {
		return nil, fmt.Errorf("list groups: %w", err)
	}
	for name := range answer.Groups {
		names = append(names, name)
	}
	return names, nil
}
