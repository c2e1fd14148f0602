package ingress

import (
	"net/http"
	"strings"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/cloudevents/sdk-go/v2/types"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// isEvent reports whether a header belongs to the event and not only to its request.
func isEvent(header string) bool {
	return strings.HasPrefix(header, "Ce-") || header == "Content-Type"
}

// passes reports whether the event matches one of the Trigger's filters.
func (t *trigger) passes(header http.Header) bool {
	for _, filter := range t.any {
		wanted := true
		for name, value := range filter {
			wanted = wanted && header.Get("Ce-"+name) == value
		}
		if wanted {
			return true
		}
	}
	return false
}

// recordOf returns the event as the record that a KafkaSink writes.
func recordOf(e event.Event, topic string) *kgo.Record {
	record := &kgo.Record{Topic: topic, Value: e.Data()}
	add := func(name, value string) {
		if value != "" {
			record.Headers = append(record.Headers, kgo.RecordHeader{Key: name, Value: []byte(value)})
		}
	}
	add("ce_specversion", e.SpecVersion())
	add("ce_id", e.ID())
	add("ce_type", e.Type())
	add("ce_source", e.Source())
	add("ce_subject", e.Subject())
	if !e.Time().IsZero() {
		add("ce_time", types.FormatTime(e.Time()))
	}
	add("content-type", e.DataContentType())
	for name, value := range e.Extensions() {
		text, err := types.Format(value)
		if err == nil { // never fails: an extension that was read from a header is text
			add("ce_"+name, text)
		}
	}
	if key := jobevent.Extension(e, jobevent.ExtPartitionKey); key != "" {
		record.Key = []byte(key)
	}
	return record
}
