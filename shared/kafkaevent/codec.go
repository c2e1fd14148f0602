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

// Encode returns the record of an event: in binary mode, keyed by its partitionkey, on the topic of its type. An event
// without data becomes a tombstone of its key. Its errors wrap jobevent.ErrInvalid.
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

// Consumed returns a record of Encode as a consumer would receive it, but without a partition: its partition and offset
// are -1.
func Consumed(m *sarama.ProducerMessage) *sarama.ConsumerMessage {
	read := &sarama.ConsumerMessage{
		Topic: m.Topic, Partition: -1, Offset: -1, Key: bytesOf(m.Key), Value: bytesOf(m.Value), Timestamp: m.Timestamp,
		Headers: make([]*sarama.RecordHeader, len(m.Headers)),
	}
	for i := range m.Headers {
		read.Headers[i] = &m.Headers[i]
	}
	return read
}

// Decode reads the event of a record, binary or structured. Its errors wrap jobevent.ErrInvalid: a
// record that cannot be read now never can be. A record without a value is an event only where its
// headers have the type of a deleted job.
func Decode(m *sarama.ConsumerMessage) (event.Event, error) {
	e, err := decode(m)
	if err != nil {
		return event.Event{}, fmt.Errorf("decode record %s/%d@%d: %w: %w",
			m.Topic, m.Partition, m.Offset, err, jobevent.ErrInvalid)
	}
	return *e, nil
}

// locations are the extensions in which the SDK stores where it read an event. Without their removal a republished
// event would have them.
var locations = []string{"kafkaoffset", "kafkapartition", "kafkatopic"}

func decode(m *sarama.ConsumerMessage) (*event.Event, error) {
	if m.Value == nil && EventType(m) != jobevent.TypeDeleted {
		return nil, errTombstone
	}
	e, err := binding.ToEvent(context.Background(), kafka_sarama.NewMessageFromConsumerMessage(m))
	if err != nil {
		return nil, err
	}
	for _, name := range locations {
		e.SetExtension(name, nil)
	}
	return e, e.Validate()
}

// EventType returns the event type of a binary record, read from its header only; empty if it has none.
func EventType(m *sarama.ConsumerMessage) string {
	for _, h := range m.Headers {
		if strings.EqualFold(string(h.Key), typeHeader) {
			return string(h.Value)
		}
	}
	return ""
}

// bytesOf returns the bytes of an encoder that has them already.
func bytesOf(e sarama.Encoder) []byte {
	if e == nil {
		return nil
	}
	b, _ := e.Encode() // a ByteEncoder or a StringEncoder, which never fail
	return b
}
