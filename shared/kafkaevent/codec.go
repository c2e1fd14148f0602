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
// type. An event without data becomes a tombstone of its key. Its errors wrap jobevent.ErrInvalid.
func Encode(e event.Event) (*sarama.ProducerMessage, error) {
	messages, _, err := encodeAll([]event.Event{e})
	if err != nil {
		return nil, err
	}
	return messages[0], nil
}

// encodeAll is Encode for many, which share their memory. It may be released when nobody looks at them any more.
func encodeAll(events []event.Event) ([]*sarama.ProducerMessage, *plainWriter, error) {
	w := newPlainWriter(len(events))
	messages := make([]*sarama.ProducerMessage, len(events))
	for i, e := range events {
		topic, err := jobevent.TopicOf(e)
		if err != nil {
			return nil, nil, fmt.Errorf("encode event %s: %w", e.ID(), err)
		}
		m := w.write(e)
		if m == nil {
			if m, err = encodeBySDK(e); err != nil {
				return nil, nil, fmt.Errorf("encode event %s: %w: %w", e.ID(), err, jobevent.ErrInvalid)
			}
		}
		m.Topic = topic
		messages[i] = m
	}
	return messages, w, nil
}

func encodeBySDK(e event.Event) (*sarama.ProducerMessage, error) {
	if err := e.Validate(); err != nil {
		return nil, err
	}
	m := &sarama.ProducerMessage{}
	return m, kafka_sarama.WriteProducerMessage(context.Background(), binding.ToMessage(&e), m)
}

// Decode reads the event of a record, binary or structured. Its errors wrap jobevent.ErrInvalid: a
// record that cannot be read now never can be. The event's data is the record's value, not a copy. A
// record without a value is an event only where its headers say that it is one of a deleted job.
func Decode(m *sarama.ConsumerMessage) (event.Event, error) {
	if e, ok := readPlain(m); ok {
		return e, nil
	}
	e, err := decodeBySDK(m)
	if err != nil {
		return event.Event{}, fmt.Errorf("decode record %s/%d@%d: %w: %w",
			m.Topic, m.Partition, m.Offset, err, jobevent.ErrInvalid)
	}
	return *e, nil
}

func decodeBySDK(m *sarama.ConsumerMessage) (*event.Event, error) {
	if m.Value == nil && EventType(m) != jobevent.TypeDeleted {
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
