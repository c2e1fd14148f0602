package kafkaevent

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/IBM/sarama"
	"golang.org/x/sync/errgroup"

	"github.com/jobweaver/jobweaver/shared/retry"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// Tailer reads a topic without a group, from the end that it had when Run began: every Tailer receives every record.
type Tailer struct {
	cfg   Config
	topic string

	started chan struct{}
	once    sync.Once

	mu   sync.Mutex // one record at a time
	next map[int32]int64

	trouble telemetry.Trouble
}

// NewTailer checks the configuration; nothing connects before Run.
func NewTailer(cfg Config, topic string) (*Tailer, error) {
	cfg, err := cfg.checked()
	if err != nil {
		return nil, err
	}
	return &Tailer{cfg: cfg, topic: topic, started: make(chan struct{}), next: map[int32]int64{},
		trouble: telemetry.Trouble{What: "tail"}}, nil
}

// Started returns a channel that is closed once the Tailer has its position: it receives all records that are published
// afterwards.
func (t *Tailer) Started() <-chan struct{} { return t.started }

// Run passes on records, one at a time, until ctx ends. It reconnects as often as needed. If the topic was wiped, it
// reads the new one from its beginning, or continues at its old position if the new topic has grown so far before that
// is noticed.
func (t *Tailer) Run(ctx context.Context, handle func(*sarama.ConsumerMessage)) error {
	for ctx.Err() == nil {
		err := t.connect(ctx, handle)
		if ctx.Err() != nil {
			return nil
		}
		t.trouble.Note(ctx, err, "topic", t.topic)
		if !retry.Pause(ctx, retryAtLeast) {
			return nil
		}
	}
	return nil
}

func (t *Tailer) connect(ctx context.Context, handle func(*sarama.ConsumerMessage)) error {
	if err := CreateTopics(ctx, t.cfg, ourTopics([]string{t.topic})); err != nil {
		return err
	}
	client, err := openClient(t.cfg, func(*sarama.Config) {})
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	consumer, err := sarama.NewConsumerFromClient(client)
	if err != nil {
		return fmt.Errorf("tail %s: %w", t.topic, err)
	}
	defer func() { _ = consumer.Close() }()
	partitions, err := client.Partitions(t.cfg.AtBrokers(t.topic))
	if err != nil {
		return fmt.Errorf("tail %s: %w", t.topic, err)
	}
	readers, err := t.open(client, consumer, partitions)
	if err != nil {
		return err
	}
	t.trouble.Note(ctx, nil, "topic", t.topic)
	t.once.Do(func() { close(t.started) })
	group, ctx := errgroup.WithContext(ctx)
	for partition, reader := range readers {
		group.Go(func() error { return t.read(ctx, partition, reader, handle) })
		group.Go(func() error { return t.watch(ctx, reader.Errors()) })
	}
	return group.Wait()
}

func (t *Tailer) open(
	client sarama.Client, consumer sarama.Consumer, partitions []int32,
) (readers map[int32]sarama.PartitionConsumer, err error) {
	opened := map[int32]sarama.PartitionConsumer{} // not readers: a return with an error sets that to nil
	defer func() {
		if err != nil {
			for _, r := range opened {
				_ = r.Close()
			}
		}
	}()
	for _, partition := range partitions {
		if _, ok := t.next[partition]; !ok {
			end, err := client.GetOffset(t.cfg.AtBrokers(t.topic), partition, sarama.OffsetNewest)
			if err != nil {
				return nil, fmt.Errorf("find end of %s/%d: %w", t.topic, partition, err)
			}
			t.next[partition] = end
		}
		reader, err := consumer.ConsumePartition(t.cfg.AtBrokers(t.topic), partition, t.next[partition])
		if errors.Is(err, sarama.ErrOffsetOutOfRange) {
			reader, err = consumer.ConsumePartition(t.cfg.AtBrokers(t.topic), partition, sarama.OffsetOldest)
		}
		if err != nil {
			return nil, fmt.Errorf("tail %s/%d: %w", t.topic, partition, err)
		}
		opened[partition] = reader
	}
	return opened, nil
}

// read ends when ctx does, or when sarama gives the partition up because its offset is gone.
func (t *Tailer) read(
	ctx context.Context, partition int32, reader sarama.PartitionConsumer, handle func(*sarama.ConsumerMessage),
) error {
	defer func() { _ = reader.Close() }() // it drains Messages and Errors
	for {
		select {
		case m, ok := <-reader.Messages():
			if !ok {
				return fmt.Errorf("tail %s/%d: %w", t.topic, partition, sarama.ErrOffsetOutOfRange)
			}
			t.mu.Lock()
			t.next[partition] = m.Offset + 1
			m.Topic = t.topic
			handle(m)
			t.mu.Unlock()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// watch creates the topic again when it is gone. Sarama retries everything else by itself.
func (t *Tailer) watch(ctx context.Context, errs <-chan *sarama.ConsumerError) error {
	for err := range errs {
		if !errors.Is(err, sarama.ErrUnknownTopicOrPartition) {
			continue
		}
		if err := CreateTopics(ctx, t.cfg, ourTopics([]string{t.topic})); ctx.Err() == nil {
			t.trouble.Note(ctx, err, "topic", t.topic)
		}
	}
	return nil
}
