package funchost

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/IBM/sarama"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/batching"
	"github.com/jobweaver/jobweaver/shared/eventkeys"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/kafkaevent"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// records has received items, and the record of each at the same index.
type records struct {
	items []jobevent.Item
	from  []*sarama.ConsumerMessage
}

func (r records) slice(from, to int) records {
	return records{items: r.items[from:to], from: r.from[from:to]}
}

// consume is the BatchHandler of a function on Kafka. When it returns, the batch's transactions have committed. When
// finish returns, the events that follow are published, and the records may be acknowledged. A batch of records can
// have thousands of items. They are handled in parts, and the events of a part are published while the next part is
// handled: otherwise workers would wait for all parts.
func (h *host) consume(ctx context.Context, messages []*sarama.ConsumerMessage) (finish func() error, err error) {
	received, rejected, err := h.read(ctx, messages)
	if err != nil {
		return nil, err
	}
	if len(rejected) > 0 {
		if err := h.awaitTurn(ctx); err != nil {
			return nil, err
		}
		if err := h.publisher.insist(ctx, rejected); err != nil {
			return nil, err
		}
	}
	if len(received.items) == 0 {
		return nil, nil
	}
	published := func() error { return nil }
	for n := 0; n < len(received.items); n += maxBatch {
		part := received.slice(n, min(n+maxBatch, len(received.items)))
		events, handleErr := h.settlePatiently(ctx, part)
		// Handling is only one part ahead: the events of the part before could be published meanwhile.
		if err := published(); err != nil {
			return nil, err
		}
		if handleErr == nil {
			published = h.startPublishing(ctx, events)
			continue
		}
		if err := h.awaitTurn(ctx); err != nil { // since blame publishes at once
			return nil, err
		}
		if err := h.blame(ctx, part, handleErr); err != nil {
			return nil, err
		}
		published = func() error { return nil }
	}
	return published, nil
}

// startPublishing publishes the items in the background, after those of the batch before. It returns a function that
// waits for the acknowledgement.
func (h *host) startPublishing(ctx context.Context, items []jobevent.Item) (wait func() error) {
	before, over := h.previous, make(chan struct{})
	h.previous = over
	var err error
	go func() {
		defer close(over)
		if before != nil {
			<-before
		}
		err = h.publisher.insist(ctx, items)
	}()
	return func() error {
		<-over
		return err
	}
}

// awaitTurn waits until the events of the batch before are published, which happens beside this batch.
func (h *host) awaitTurn(ctx context.Context) error {
	if h.previous == nil {
		return nil
	}
	select {
	case <-h.previous:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the batch before: %w", ctx.Err())
	}
}

// read reads the items of records, and returns the items that report unreadable ones.
func (h *host) read(
	ctx context.Context, messages []*sarama.ConsumerMessage,
) (received records, rejected []jobevent.Item, err error) {
	received = records{
		items: make([]jobevent.Item, 0, len(messages)), from: make([]*sarama.ConsumerMessage, 0, len(messages)),
	}
	for _, m := range messages {
		if h.f.Skips != nil && h.f.Skips(m.Topic, kafkaevent.EventType(m)) {
			continue
		}
		items, label := Decode(m, h.topicKeys)
		for _, it := range items {
			if it.Err == nil {
				received.items, received.from = append(received.items, it), append(received.from, m)
				continue
			}
			about, err := h.reject(ctx, m, it, label, it.Err)
			if err != nil {
				return received, nil, err
			}
			rejected = append(rejected, about...)
		}
	}
	return received, rejected, nil
}

// Decode returns the items of a record, and checks the signature of its event; keys nil: it does not. A record that
// cannot be used at all becomes one item with an error. label names the kind of the errors, which are permanent.
func Decode(m *sarama.ConsumerMessage, keys *eventkeys.Keys) (items []jobevent.Item, label string) {
	e, err := kafkaevent.Decode(m)
	if err == nil {
		if err = keys.Check(e); err != nil {
			label = telemetry.RejectedUnsigned
		} else {
			items, err = jobevent.Unpack(e)
		}
	}
	if err != nil {
		whole := jobevent.ItemOf(e)
		whole.Err = err
		return []jobevent.Item{whole}, cmp.Or(label, telemetry.RejectedUndecodable)
	}
	return items, telemetry.RejectedUndecodable
}

func (h *host) settlePatiently(ctx context.Context, received records) ([]jobevent.Item, error) {
	deadline := time.Now().Add(patience)
	return h.settle(ctx, received.items, func() bool {
		return time.Now().After(deadline) && !h.stopping.Load()
	})
}

// blame finds the item that causes the error: it halves the records until only that item is left, and rejects it. If
// the records were too many for the database's time limits, it halves them until they are not. The first half is
// published before the second is handled, which keeps the order.
func (h *host) blame(ctx context.Context, received records, err error) error {
	places := make([]int, len(received.items))
	for i := range places {
		places[i] = i
	}
	return batching.Bisect(places, err, func(part []int) error {
		events, err := h.settlePatiently(ctx, received.slice(part[0], part[len(part)-1]+1))
		if err != nil {
			return err
		}
		return h.publisher.insist(ctx, events)
	}, isDue, func(i int, err error) error {
		about, err := h.reject(ctx, received.from[i], received.items[i], rejectedLabel(err), err)
		if err != nil {
			return err
		}
		return h.publisher.insist(ctx, about)
	})
}

// reject counts an item that can never be used, and returns the item that reports it. It reports no record of the
// dead-letter topic: the report would be on the same topic, and could be rejected like the record, again and again.
func (h *host) reject(
	ctx context.Context, m *sarama.ConsumerMessage, it jobevent.Item, label string, cause error,
) ([]jobevent.Item, error) {
	reason := label + ": " + cause.Error()
	logger := telemetry.Logger(ctx)
	if it.TraceID() != uuid.Nil {
		logger = logger.With(telemetry.FieldTraceID, it.TraceID())
	}
	logger.WarnContext(ctx, "record rejected", "topic", m.Topic, "partition", m.Partition,
		"offset", m.Offset, "reason", reason)
	h.meter.Rejected(label)
	if m.Topic == jobevent.TopicDeadLetter {
		return nil, nil
	}
	about, err := Rejected(h.f.Name, m, it, h.topicKeys, reason)
	return []jobevent.Item{about}, err
}
