package localkafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	trimEvery = 10 * time.Second
	// lookBack is how many records of a partition are kept after all groups have read them.
	lookBack    = 10_000
	trimAtLeast = 1_000
	// memoryTrimEvery is trimEvery for a broker in memory, which keeps little.
	memoryTrimEvery = time.Second
	// warnEvery is the least time between two warnings that a broker in memory is full.
	warnEvery = time.Minute
)

// trimmer deletes the records that all consumer groups of a topic have read. The embedded broker keeps an entry in
// memory for each batch that it has, and reads a compacted topic as a whole to compact it: a week's retention,
// harmless on a cluster, would be gigabytes of memory here, in a busy installation.
type trimmer struct {
	cluster  *kfake.Cluster
	lookBack int64                                        // records that are kept after all groups have read them
	every    time.Duration                                // between two passes
	limit    int64                                        // of all bytes, read or not; 0: none
	dial     func(network, addr string) (net.Conn, error) // nil: TCP
	produced int64                                        // bytes since the last pass; of the cluster's goroutine
	full     chan struct{}                                // much was produced since the last pass
	warned   time.Time                                    // when drop last logged
	stop     context.CancelFunc
	done     chan struct{}
}

func startTrimmer(t *trimmer) *trimmer {
	ctx, stop := context.WithCancel(context.Background())
	t.stop, t.done = stop, make(chan struct{})
	go t.run(ctx)
	return t
}

// watchProduced makes a pass begin as soon as an eighth of the limit was produced: a second is long for a
// fast producer.
func (t *trimmer) watchProduced() {
	t.full = make(chan struct{}, 1)
	t.cluster.ControlKey(int16(kmsg.Produce), func(request kmsg.Request) (kmsg.Response, error, bool) {
		t.cluster.KeepControl()
		for _, topic := range request.(*kmsg.ProduceRequest).Topics {
			for _, p := range topic.Partitions {
				t.produced += int64(len(p.Records))
			}
		}
		if t.produced > t.limit/8 {
			t.produced = 0
			select {
			case t.full <- struct{}{}:
			default:
			}
		}
		return nil, nil, false
	})
}

func (t *trimmer) close() {
	t.stop()
	<-t.done
}

func (t *trimmer) run(ctx context.Context) {
	defer close(t.done)
	tick := time.NewTicker(t.every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-t.full:
		case <-ctx.Done():
			return
		}
		if err := t.pass(ctx); err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "embedded broker: trim", "error", err)
		}
	}
}

// pass trims every topic that has groups, and then, if there is a limit, those that have most bytes.
func (t *trimmer) pass(ctx context.Context) error {
	names, topics, err := t.list()
	if err != nil {
		return err
	}
	var groups []*kfake.GroupInfo
	read := map[string]bool{}
	for _, name := range names {
		g := t.cluster.GroupInfo(name)
		if g == nil {
			continue
		}
		groups = append(groups, g)
		for topic := range g.Commits {
			read[topic] = true
		}
	}
	var failed error
	for topic := range read {
		for _, p := range t.cluster.PartitionInfos(topic) {
			to := min(readByAll(groups, topic, p), p.HighWatermark-t.lookBack)
			if to-p.LogStartOffset >= t.atLeast() {
				failed = errors.Join(failed, t.cluster.DeleteRecords(topic, p.Partition, to))
			}
		}
	}
	if t.limit > 0 {
		failed = errors.Join(failed, t.drop(ctx, topics))
	}
	return failed
}

// atLeast prevents trimming a quiet partition one record at a time, where that costs more than the records do.
func (t *trimmer) atLeast() int64 {
	if t.limit > 0 {
		return 1
	}
	return trimAtLeast
}

// drop deletes the older half of the partition that has most bytes until all have less than the limit. Events that are
// deleted unread are published again from the databases, like those that a cluster loses.
func (t *trimmer) drop(ctx context.Context, topics []string) error {
	dropped := map[string]int64{}
	defer func() {
		if len(dropped) > 0 && time.Since(t.warned) > warnEvery {
			t.warned = time.Now()
			slog.WarnContext(ctx, "embedded broker: it is full, and deletes the oldest records; they are published again",
				"records", dropped)
		}
	}()
	for ctx.Err() == nil {
		largest, topic, total := (*kfake.PartitionInfo)(nil), "", int64(0)
		for _, name := range topics {
			for _, p := range t.cluster.PartitionInfos(name) {
				total += p.NumBytes
				if largest == nil || p.NumBytes > largest.NumBytes {
					largest, topic = p, name
				}
			}
		}
		if total <= t.limit || largest.NumBytes == 0 {
			return nil
		}
		half := (largest.HighWatermark - largest.LogStartOffset + 1) / 2
		if err := t.cluster.DeleteRecords(topic, largest.Partition, largest.LogStartOffset+half); err != nil {
			return err
		}
		dropped[topic] += half
	}
	return nil
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

// list returns the names of all groups and topics. It asks over the wire: the broker's own API returns only what one
// names.
func (t *trimmer) list() (groups, topics []string, err error) {
	b := sarama.NewBroker(t.cluster.ListenAddrs()[0])
	cfg := sarama.NewConfig()
	cfg.Version = sarama.V2_8_0_0
	if t.dial != nil {
		cfg.Net.Proxy.Enable, cfg.Net.Proxy.Dialer = true, dialFunc(t.dial)
	}
	if err := b.Open(cfg); err != nil {
		return nil, nil, fmt.Errorf("connect: %w", err)
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	answer, err := b.ListGroups(&sarama.ListGroupsRequest{})
	if err != nil {
		return nil, nil, fmt.Errorf("list groups: %w", err)
	}
	all, err := b.GetMetadata(sarama.NewMetadataRequest(cfg.Version, nil))
	if err != nil {
		return nil, nil, fmt.Errorf("list topics: %w", err)
	}
	for _, topic := range all.Topics {
		topics = append(topics, topic.Name)
	}
	return slices.Collect(maps.Keys(answer.Groups)), topics, nil
}

// dialFunc implements sarama's Dialer.
type dialFunc func(network, addr string) (net.Conn, error)

func (d dialFunc) Dial(network, addr string) (net.Conn, error) { return d(network, addr) }
