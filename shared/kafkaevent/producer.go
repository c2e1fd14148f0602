package kafkaevent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/IBM/sarama"
	"github.com/cloudevents/sdk-go/v2/event"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/retry"
)

const (
	publishTimeout = 30 * time.Second // whatever the caller's context allows
	// A killed leader is replaced after some nine seconds. Publish gives up after this time, before publishTimeout, so
	// that it can return the reason.
	publishTriesFor  = 10 * time.Second
	publishPause     = 50 * time.Millisecond // before the second try; each further pause is twice as long
	publishPauseMost = 1600 * time.Millisecond
	recordVersion    = 2 // of Kafka's record format, to know a record's size
	// maxPublishing bounds the calls that hang in sarama while a broker does not answer: further callers wait as long as
	// their context allows.
	maxPublishing = 64
)

// Producer publishes events. It connects when first used, and anew after a failure: a fresh
// connection knows the topics that were created since, and their current leaders.
type Producer struct {
	cfg    Config
	places chan struct{}
	lines  *lines // of all connections

	mu     sync.Mutex
	conn   *connection // nil: none
	closed bool

	closing sync.WaitGroup // connections being closed
}

// NewProducer checks the configuration; nothing connects before the first Publish.
func NewProducer(cfg Config) (*Producer, error) {
	cfg, err := cfg.opened()
	if err != nil {
		return nil, err
	}
	if _, err := cfg.Sarama(); err != nil {
		return nil, err
	}
	return &Producer{cfg: cfg, places: make(chan struct{}, maxPublishing), lines: newLines(cfg)}, nil
}

// Publish returns nil once the broker has acknowledged every event. After an error any of them may or may not have been
// published; publish them again. Events with one key on one topic keep their order, others may overtake each other: to
// publish an event of one topic before one of another, call Publish twice. It returns when ctx ends, or after half a
// minute, whatever the broker does. An error wraps jobevent.ErrInvalid if an event can never be published.
func (p *Producer) Publish(ctx context.Context, events []event.Event) error {
	if len(events) == 0 {
		return nil
	}
	messages := make([]*sarama.ProducerMessage, len(events))
	for i, e := range events {
		m, err := Encode(e)
		if err != nil {
			return err
		}
		if size := m.ByteSize(recordVersion); size > producerLimit {
			return fmt.Errorf("publish event %s of %d bytes to %s: %w: %w",
				e.ID(), size, m.Topic, sarama.ErrMessageSizeTooLarge, jobevent.ErrInvalid)
		}
		m.Topic = p.cfg.AtBrokers(m.Topic)
		messages[i] = m
	}
	return p.publish(ctx, messages)
}

// PublishRecord publishes one record unchanged, with its timestamp if it has one. Its errors are those of Publish.
func (p *Producer) PublishRecord(ctx context.Context, m *sarama.ProducerMessage) error {
	if size := m.ByteSize(recordVersion); size > producerLimit {
		return fmt.Errorf("publish a record of %d bytes to %s: %w: %w",
			size, m.Topic, sarama.ErrMessageSizeTooLarge, jobevent.ErrInvalid)
	}
	own := *m
	own.Topic = p.cfg.AtBrokers(m.Topic)
	return p.publish(ctx, []*sarama.ProducerMessage{&own})
}

func (p *Producer) publish(ctx context.Context, messages []*sarama.ProducerMessage) error {
	topics := topicsOf(messages)
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	select {
	case p.places <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("publish to %s: %w", topics, context.Cause(ctx))
	}
	err := bounded(ctx, func() error {
		defer func() { <-p.places }()
		return p.send(ctx, messages)
	})
	if err != nil {
		return fmt.Errorf("publish to %s: %w", topics, err)
	}
	return nil
}

// send sends messages, and retries those that failed if another try can help.
func (p *Producer) send(ctx context.Context, messages []*sarama.ProducerMessage) error {
	limit, began, wait := producerLimit, time.Now(), retry.Backoff(publishPause, publishPauseMost)
	for {
		failed, err := p.try(ctx, messages, limit)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, sarama.ErrMessageSizeTooLarge):
			return fmt.Errorf("%w: %w", err, jobevent.ErrInvalid)
		case errors.Is(err, errCrowded):
			limit = min(limit, sizeOf(failed)) / 2
		case time.Since(began) > publishTriesFor || !curable(err):
			return err
		case !retry.Pause(ctx, wait.NextBackOff()):
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
		messages = failed
	}
}

// try returns the messages that failed, and the reason.
func (p *Producer) try(
	ctx context.Context, messages []*sarama.ProducerMessage, limit int,
) ([]*sarama.ProducerMessage, error) {
	conn, err := p.connect(ctx)
	if err != nil {
		return messages, err
	}
	defer conn.users.Done()
	if err := conn.ensure(ctx, p.cfg, messages); err != nil {
		p.drop(conn)
		return messages, err
	}
	failed, err := conn.send(ctx, messages, limit)
	if err != nil && !isTooLarge(err) {
		p.drop(conn)
	}
	return failed, err
}

func sizeOf(messages []*sarama.ProducerMessage) (bytes int) {
	for _, m := range messages {
		bytes += m.ByteSize(recordVersion)
	}
	return bytes
}

// connect returns the current connection; the caller releases it with users.Done.
func (p *Producer) connect(ctx context.Context) (*connection, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, sarama.ErrClosedClient
	}
	if err := ctx.Err(); err != nil {
		return nil, err // the goroutine that had the lock before waited for too long
	}
	if p.conn != nil && p.conn.isRetired() {
		p.closing.Go(p.conn.close)
		p.conn = nil
	}
	if p.conn == nil {
		conn, err := openConnection(p.cfg, p.lines)
		if err != nil {
			return nil, err
		}
		p.conn = conn
	}
	p.conn.users.Add(1)
	return p.conn, nil
}

// drop makes the next connect open a new connection.
func (p *Producer) drop(conn *connection) {
	p.mu.Lock()
	defer p.mu.Unlock()
	conn.retire()
	if p.conn != conn {
		return // another goroutine was first
	}
	p.conn = nil
	p.closing.Go(conn.close)
}

// Close waits some seconds for publications that are under way.
func (p *Producer) Close() {
	defer time.AfterFunc(leaveTimeout, p.lines.cut).Stop()
	p.mu.Lock()
	conn := p.conn
	p.conn, p.closed = nil, true
	p.mu.Unlock()
	if conn != nil {
		conn.close()
	}
	p.closing.Wait()
}

// curable reports whether another connection, or some time, may help. It does after every network error: the connection
// may lead to an earlier instance of the broker.
func curable(err error) bool {
	var refused sarama.KError
	var unwritable sarama.PacketEncodingError
	if errors.Is(err, sarama.ErrClosedClient) || errors.As(err, &unwritable) {
		return false
	}
	return !errors.As(err, &refused) || slices.ContainsFunc([]error{
		sarama.ErrUnknownTopicOrPartition,
		sarama.ErrLeaderNotAvailable, // the error while a topic is created again
		sarama.ErrNotLeaderForPartition,
		sarama.ErrReplicaNotAvailable,
		sarama.ErrBrokerNotAvailable,
		sarama.ErrNotController,
		sarama.ErrNetworkException,
		sarama.ErrInvalidMessage, // damaged in transit
		sarama.ErrKafkaStorageError,
		sarama.ErrRequestTimedOut,
		sarama.ErrNotEnoughReplicas,
		sarama.ErrNotEnoughReplicasAfterAppend,
		errRetired,
	}, func(target error) bool { return errors.Is(err, target) })
}

func topicsOf(messages []*sarama.ProducerMessage) string {
	var names []string
	for _, m := range messages {
		if !slices.Contains(names, m.Topic) {
			names = append(names, m.Topic)
		}
	}
	return strings.Join(names, ",")
}
