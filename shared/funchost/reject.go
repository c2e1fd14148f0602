package funchost

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/IBM/sarama"
	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// What a rejected record may bring along, so that the event about it stays below 1 MiB, which every
// broker takes: base64 makes four bytes of three, and JSON up to six of one.
const (
	maxRejectedValue   = 640 << 10
	maxRejectedHeaders = 16 << 10
	maxRejectedReason  = 1 << 10
)

// RejectedEvent tells of a record that could not be used. The same record makes the same event.
func RejectedEvent(function string, m *sarama.ConsumerMessage, traceID uuid.UUID, reason string) (event.Event, error) {
	data := jobevent.Rejected{
		Topic: m.Topic, Partition: m.Partition, Offset: m.Offset,
		Reason:  cut(strings.ToValidUTF8(reason, "�"), maxRejectedReason),
		Headers: map[string]string{},
		Value:   m.Value,
	}
	room := maxRejectedHeaders
	for _, header := range m.Headers {
		if room -= len(header.Key) + len(header.Value); room < 0 {
			data.Truncated = true
			break
		}
		data.Headers[string(header.Key)] = string(header.Value)
	}
	if len(data.Value) > maxRejectedValue {
		data.Value, data.Truncated = data.Value[:maxRejectedValue], true
	}
	return jobevent.New(jobevent.TypeRejected, jobevent.Meta{
		Function: function,
		ID:       fmt.Sprintf("%s/%d/%d.rejected", m.Topic, m.Partition, m.Offset),
		TraceID:  traceID,
	}, data)
}

// cut shortens text to at most limit bytes, between two characters.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}
