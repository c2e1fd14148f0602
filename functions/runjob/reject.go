package runjob

import (
	"fmt"
	"log/slog"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// reject passes a record that can never be used on to the dead letters, with the reason.
func (f *Function) reject(d delivered, reason error) {
	m := d.message
	slog.Warn("record rejected", "topic", m.Topic, "partition", m.Partition, "offset", m.Offset, "error", reason)
	headers := make(map[string]string, len(m.Headers))
	for _, h := range m.Headers {
		headers[clean(string(h.Key), maxMessage)] = clean(string(h.Value), maxMessage)
	}
	rejected := jobevent.Rejected{
		Topic: m.Topic, Partition: m.Partition, Offset: m.Offset,
		Reason: clean(reason.Error(), maxMessage), Headers: headers, Value: m.Value,
	}
	if len(rejected.Value) > maxValueBytes {
		rejected.Value, rejected.Truncated = rejected.Value[:maxValueBytes], true
	}
	id := fmt.Sprintf("%s.%d.%d.rejected", m.Topic, m.Partition, m.Offset)
	f.decided(finished{
		settled: true, from: []record{d.record},
		events: f.append(nil, jobevent.TypeRejected, jobevent.Meta{ID: id}, rejected),
	})
	f.metrics.rejected.Inc()
}
