package kafkaevent

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/IBM/sarama"
	"github.com/cloudevents/sdk-go/protocol/kafka_sarama/v2"
	"github.com/cloudevents/sdk-go/v2/binding"
	"github.com/cloudevents/sdk-go/v2/event"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

const typeHeader = "ce_type"

var errTombstone = errors.New("record without a value")

// Encode makes the record of an event: binary mode, keyed by its partitionkey, on the topic of its
// type. An event without data becomes a tombstone. Its errors wrap jobevent.ErrInvalid.
func Encode(e event.Event) (*sarama.ProducerMessage, error) {
	topic, err := jobevent.TopicOf(e)
	if err != nil {
		return nil, fmt.Errorf("encode event %s: %w", e.ID(), err)
	}
	if err := e.Validate(); err != nil {
		return nil, fmt.Errorf("encode event %s: %w: %w", e.ID(), err, jobevent.ErrInvalid)
	}
	m := &sarama.ProducerMessage{Topic: topic}
	if err := kafka_sarama.WriteProducerMessage(context.Background(), binding.ToMessage(&e), m); err != nil {
		return nil, fmt.Errorf("encode event %s: %w: %w", e.ID(), err, jobevent.ErrInvalid)
	}
	return m, nil
}

// Decode reads the event of a record, binary or structured. Its errors wrap jobevent.ErrInvalid: a
// record that cannot be read now never can be.
func Decode(m *sarama.ConsumerMessage) (event.Event, error) {
	e, err := decode(m)
	if err != nil {
		return event.Event{}, fmt.Errorf("decode record %s/%d@%d: %w: %w",
			m.Topic, m.Partition, m.Offset, err, jobevent.ErrInvalid)
	}
	return *e, nil
}

func decode(m *sarama.ConsumerMessage) (*event.Event, error) {
	if m.Value == nil {
		return nil, errTombstone
	}
	e, err := binding.ToEvent(context.Background(), kafka_sarama.NewMessageFromConsumerMessage(m))
	if err != nil {
		return nil, err
	}
	// The SDK adds where it read the event; said again, it would carry that along.
	for _, name := range []string{"kafkaoffset", "kafkapartition", "kafkatopic"} {
		e.SetExtension(name, nil)
	}
	if err := e.Validate(); err != nil {
		return nil, err
	}
	return e, nil
}

// EventType is the event type of a binary record, read from its header alone. Empty when it has none.
func EventType(m *sarama.ConsumerMessage) string {
	for _, h := range m.Headers {
		if strings.EqualFold(string(h.Key), typeHeader) {
			return string(h.Value)
		}
	}
	return ""
}
