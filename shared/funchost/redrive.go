package funchost

import (
	"context"
	"fmt"

	"github.com/IBM/sarama"
	"github.com/cloudevents/sdk-go/v2/event"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/kafkaevent"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// Redrive puts a record that was rejected on its topic again, exactly as it was: its key, headers and value, and its
// timestamp. Nothing is signed anew, or an event that nobody has signed would be believed. Where events go to a sink
// the record goes there as the event that it is. An error wraps jobevent.ErrInvalid where that is impossible, now and
// ever.
type Redrive func(ctx context.Context, record jobevent.Rejected) error

// NewRedrive makes one for what a function's host publishes to. Nothing connects before the first record.
func NewRedrive(cfg Config, function string) (Redrive, func(), error) {
	if cfg.Sink != "" {
		s, err := newSink(cfg, telemetry.NewMeter(function))
		if err != nil {
			return nil, nil, err
		}
		return s.redrive, s.close, nil
	}
	producer, err := kafkaevent.NewProducer(cfg.Kafka)
	if err != nil {
		return nil, nil, err
	}
	return func(ctx context.Context, record jobevent.Rejected) error {
		return producer.PublishRecord(ctx, produced(record))
	}, producer.Close, nil
}

// redrive sends the event of a record.
func (s *sink) redrive(ctx context.Context, record jobevent.Rejected) error {
	m := produced(record)
	e, err := kafkaevent.Decode(kafkaevent.Consumed(m))
	if err != nil {
		return fmt.Errorf("the record is no CloudEvent, which the sink of this installation needs: %w", err)
	}
	said, err := s.send(ctx, []event.Event{e})
	if err == nil && len(said) == 0 {
		return fmt.Errorf("%w: %w", errRefused, jobevent.ErrInvalid)
	}
	return err
}

// produced is a rejected record as a producer sends it.
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
