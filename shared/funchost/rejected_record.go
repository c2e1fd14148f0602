package funchost

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/IBM/sarama"
	"github.com/cloudevents/sdk-go/v2/event"

	"github.com/jobweaver/jobweaver/shared/eventkeys"
	"github.com/jobweaver/jobweaver/shared/funchost/sink"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/kafkaevent"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// Redrive publishes a rejected record to its topic again, unchanged: its key, headers, value and timestamp. It does not
// sign the event: otherwise an unsigned event would become valid. If events go to a sink, the record's event goes
// there. An error wraps jobevent.ErrInvalid if that is impossible for good.
type Redrive func(ctx context.Context, record jobevent.Rejected) error

// NewRedrive returns a Redrive to the broker or sink of a function's host. It connects with the first record.
func NewRedrive(cfg Config, function string) (Redrive, func(), error) {
	if cfg.Sink != "" {
		s, err := cfg.newSink(telemetry.NewMeter(function))
		if err != nil {
			return nil, nil, err
		}
		return func(ctx context.Context, record jobevent.Rejected) error { return redriveTo(ctx, s, record) }, s.Close, nil
	}
	producer, err := kafkaevent.NewProducer(cfg.Kafka)
	if err != nil {
		return nil, nil, err
	}
	return func(ctx context.Context, record jobevent.Rejected) error {
		return producer.PublishRecord(ctx, produced(record))
	}, producer.Close, nil
}

// redriveTo sends the event of a record.
func redriveTo(ctx context.Context, s *sink.Sink, record jobevent.Rejected) error {
	m := produced(record)
	e, err := kafkaevent.Decode(kafkaevent.Consumed(m))
	if err != nil {
		return fmt.Errorf("the record is not a CloudEvent, which the sink of this installation needs: %w", err)
	}
	taken, err := s.Send(ctx, []event.Event{e})
	if err == nil && len(taken) == 0 {
		return fmt.Errorf("%w: %w", sink.ErrRefused, jobevent.ErrInvalid)
	}
	return err
}

// produced returns a rejected record as a producer sends it.
func produced(r jobevent.Rejected) *sarama.ProducerMessage {
	m := &sarama.ProducerMessage{Topic: r.Topic, Headers: make([]sarama.RecordHeader, len(r.RecordHeaders))}
	for i, header := range r.RecordHeaders {
		m.Headers[i] = sarama.RecordHeader{Key: header.Key, Value: header.Value}
	}
	if r.Key != nil {
		m.Key = sarama.ByteEncoder(r.Key)
	}
	if r.Value != nil {
		m.Value = sarama.ByteEncoder(r.Value)
	}
	if r.RecordedAt != nil {
		m.Timestamp = *r.RecordedAt
	}
	return m
}

// The sizes to which parts of a rejected record are cut, so that the event about it stays below 1 MiB, which every
// broker accepts: base64 makes four bytes of three, and JSON up to six of one. The event has the headers twice.
const (
	maxRejectedValue   = 640 << 10
	maxRejectedHeaders = 16 << 10
	maxRejectedKey     = 8 << 10
	maxRejectedReason  = 1 << 10
)

// Rejected returns the event about a record that cannot be used, or about one item of its event. The same input gives
// the same event. An item is reported as a record at the same offset whose event has only this item. keys have verified
// the record's event, and sign the event with the item, so that its redrive is not refused; nil: events are neither
// verified nor signed.
func Rejected(
	function string, m *sarama.ConsumerMessage, it jobevent.Item, keys *eventkeys.Keys, reason string,
) (jobevent.Item, error) {
	id := fmt.Sprintf("%s/%d/%d.rejected", m.Topic, m.Partition, m.Offset)
	if it.Shared() {
		alone := []event.Event{it.Alone()}
		keys.Sign(alone)
		made, err := kafkaevent.Encode(alone[0])
		if err != nil {
			return jobevent.Item{}, err
		}
		id = fmt.Sprintf("%s/%d/%d/%d.rejected", m.Topic, m.Partition, m.Offset, it.Number())
		record := kafkaevent.Consumed(made)
		record.Topic, record.Partition, record.Offset, record.Timestamp = m.Topic, m.Partition, m.Offset, m.Timestamp
		m = record
	}
	return jobevent.New(jobevent.TypeRejected, jobevent.Meta{Function: function, ID: id, TraceID: it.TraceID()},
		rejectedData(m, reason))
}

func rejectedData(m *sarama.ConsumerMessage, reason string) jobevent.Rejected {
	data := jobevent.Rejected{
		Topic: m.Topic, Partition: m.Partition, Offset: m.Offset,
		Reason:        cut(strings.ToValidUTF8(reason, "�"), maxRejectedReason),
		Headers:       map[string]string{},
		Value:         m.Value,
		Key:           m.Key,
		RecordHeaders: []jobevent.RecordHeader{},
	}
	if at := m.Timestamp.UTC(); at.Year() >= 1970 && at.Year() <= 9999 { // years in JSON have four digits
		data.RecordedAt = &at
	}
	room := maxRejectedHeaders
	for _, header := range m.Headers {
		if room -= len(header.Key) + len(header.Value); room < 0 {
			data.Truncated = true
			break
		}
		data.Headers[string(header.Key)] = string(header.Value)
		data.RecordHeaders = append(data.RecordHeaders, jobevent.RecordHeader{Key: header.Key, Value: header.Value})
	}
	if len(data.Key) > maxRejectedKey {
		data.Key, data.Truncated = data.Key[:maxRejectedKey], true
	}
	if len(data.Value) > maxRejectedValue {
		data.Value, data.Truncated = data.Value[:maxRejectedValue], true
	}
	return data
}

// rejectedOverHTTP returns the report of an event over HTTP that can never be handled, as the record that it would be
// on its topic. ok is false if it is not reported: it belongs to no topic, or to the dead-letter topic.
func rejectedOverHTTP(function string, e event.Event, reason string) (rejected jobevent.Item, ok bool) {
	m, err := kafkaevent.Encode(e)
	if err != nil || m.Topic == jobevent.TopicDeadLetter {
		return jobevent.Item{}, false
	}
	rejected, err = jobevent.New(jobevent.TypeRejected, jobevent.Meta{
		Function: function,
		ID:       fmt.Sprintf("%s/%s.rejected", m.Topic, e.ID()),
		TraceID:  jobevent.TraceIDOf(e),
	}, rejectedData(kafkaevent.Consumed(m), reason))
	return rejected, err == nil
}

// cut shortens text to at most limit bytes, at a boundary between characters.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}
