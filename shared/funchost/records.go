package funchost

import (
	"context"
	"time"

	"github.com/IBM/sarama"
	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/kafkaevent"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// records are heard events with where they came from, index by index.
type records struct {
	events   []event.Event
	messages []*sarama.ConsumerMessage
}

func (r records) slice(from, to int) records {
	return records{events: r.events[from:to], messages: r.messages[from:to]}
}

// hear is the BatchHandler of a function on Kafka: when it has returned, what follows from the batch is
// in the store; when finish has, it is published, and the records may be acknowledged.
func (h *host) hear(ctx context.Context, messages []*sarama.ConsumerMessage) (finish func() error, err error) {
	heard := records{
		events:   make([]event.Event, 0, len(messages)),
		messages: make([]*sarama.ConsumerMessage, 0, len(messages)),
	}
	var rejected []event.Event
	for _, m := range messages {
		e, label, err := h.decode(m)
		if err != nil {
			e, err = h.reject(ctx, m, jobevent.TraceIDOf(e), label, err)
			if err != nil {
				return nil, err
			}
			rejected = append(rejected, e)
			continue
		}
		heard.events = append(heard.events, e)
		heard.messages = append(heard.messages, m)
	}
	if err := h.publisher.insist(ctx, rejected); err != nil || len(heard.events) == 0 {
		return nil, err
	}
	say, err := h.settlePatiently(ctx, heard)
	if err != nil {
		return nil, h.blame(ctx, heard, err)
	}
	return func() error { return h.publisher.insist(ctx, say) }, nil
}

// decode reads a record and checks who has signed it. Its errors never get better; label names their kind.
func (h *host) decode(m *sarama.ConsumerMessage) (e event.Event, label string, err error) {
	if e, err = kafkaevent.Decode(m); err != nil {
		return e, telemetry.RejectedUndecodable, err
	}
	return e, telemetry.RejectedUnsigned, h.topicKeys.Check(e)
}

func (h *host) settlePatiently(ctx context.Context, heard records) ([]event.Event, error) {
	deadline := time.Now().Add(patience)
	return h.settle(ctx, heard.events, func() bool {
		return time.Now().After(deadline) && !h.stopping.Load()
	})
}

// handle has the records handled and publishes what follows.
func (h *host) handle(ctx context.Context, heard records) error {
	say, err := h.settlePatiently(ctx, heard)
	if err != nil {
		return h.blame(ctx, heard, err)
	}
	return h.publisher.insist(ctx, say)
}

// blame looks for what in the records is to blame for the error: it halves them until that alone is left, and
// rejects it. Records that were too much for the database's time limits it halves until they no longer are. The
// first half is published before the second is handled, so that order holds.
func (h *host) blame(ctx context.Context, heard records, err error) error {
	n := len(heard.events)
	switch {
	case !neverBetter(err) && !tooMuch(err, n):
		return err
	case n == 1:
		reason := telemetry.RejectedInvalid
		if isPanic(err) {
			reason = telemetry.RejectedPanic
		}
		e, err := h.reject(ctx, heard.messages[0], jobevent.TraceIDOf(heard.events[0]), reason, err)
		if err != nil {
			return err
		}
		return h.publisher.insist(ctx, []event.Event{e})
	}
	if err := h.handle(ctx, heard.slice(0, n/2)); err != nil {
		return err
	}
	return h.handle(ctx, heard.slice(n/2, n))
}

// reject notes that a record can never be used and makes the event about it.
func (h *host) reject(
	ctx context.Context, m *sarama.ConsumerMessage, traceID uuid.UUID, label string, cause error,
) (event.Event, error) {
	reason := label + ": " + cause.Error()
	logger := telemetry.Logger(ctx)
	if traceID != uuid.Nil {
		logger = logger.With(telemetry.FieldTraceID, traceID)
	}
	logger.WarnContext(ctx, "record rejected", "topic", m.Topic, "partition", m.Partition,
		"offset", m.Offset, "reason", reason)
	h.meter.Rejected(label)
	return RejectedEvent(h.f.Name, m, traceID, reason)
}
