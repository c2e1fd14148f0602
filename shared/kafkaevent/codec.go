package kafkaevent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/IBM/sarama"
	"github.com/cloudevents/sdk-go/protocol/kafka_sarama/v2"
	"github.com/cloudevents/sdk-go/v2/binding"
	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/cloudevents/sdk-go/v2/types"

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
// headers have the type of a deleted job. The event's data may be the record's value, not a copy.
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

// readPlain reads the events that functions write, in a third of the SDK's time. It leaves all others to
// the SDK. Why: docs/decisions/events.md#what-stays-written-by-hand-beside-sarama-and-the-sdk
func readPlain(m *sarama.ConsumerMessage) (event.Event, bool) {
	if len(m.Value) == 0 && EventType(m) != jobevent.TypeDeleted {
		return event.Event{}, false
	}
	ctx := &event.EventContextV1{}
	e, version := event.Event{Context: ctx}, ""
	if len(m.Value) > 0 {
		e.DataEncoded = m.Value
	}
	for _, h := range m.Headers {
		value := string(h.Value)
		var err error
		switch name := string(h.Key); name {
		case "ce_specversion":
			version = value
		case "ce_id":
			err = ctx.SetID(value)
		case typeHeader:
			err = ctx.SetType(value)
		case "ce_source":
			err = ctx.SetSource(value)
		case "ce_subject":
			err = ctx.SetSubject(value)
		case "ce_time":
			var at time.Time
			if at, err = types.ParseTime(value); err == nil {
				err = ctx.SetTime(at)
			}
		case "content-type":
			ctx.DataContentType = &value
			if value != event.ApplicationJSON {
				return e, false
			}
		default:
			extension, ok := strings.CutPrefix(name, "ce_")
			if !ok || slices.Contains(locations, extension) {
				return e, false
			}
			err = ctx.SetExtension(extension, value)
		}
		if err != nil {
			return e, false
		}
	}
	return e, version == event.CloudEventsVersionV1 && ctx.ID != "" && ctx.Type != "" && ctx.Source.Path != ""
}

// locations are the extensions in which the SDK stores where it read an event. Without their removal a republished
// event would have them.
var locations = []string{"kafkaoffset", "kafkapartition", "kafkatopic"}

func decodeBySDK(m *sarama.ConsumerMessage) (*event.Event, error) {
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
