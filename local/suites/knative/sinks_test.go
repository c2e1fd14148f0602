package knative

import (
	"fmt"
	"net/http"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/cloudevents/sdk-go/v2/types"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// kafkaSink is a KafkaSink: each event that it receives by HTTP becomes a record of its topic, in binary mode, keyed
// by its partitionkey. The client's partitioner is that of Kafka's own producers.
type kafkaSink struct {
	topic  string
	client *kgo.Client
}

func (s *kafkaSink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e, err := readEvent(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	record, err := recordOf(e, s.topic)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if err := s.client.ProduceSync(r.Context(), record).FirstErr(); err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

func recordOf(e event.Event, topic string) (*kgo.Record, error) {
	record := &kgo.Record{Topic: topic, Value: e.Data()}
	add := func(name, value string) {
		record.Headers = append(record.Headers, kgo.RecordHeader{Key: name, Value: []byte(value)})
	}
	for _, name := range []string{"specversion", "id", "type", "source", "subject"} {
		if value, there := attribute(e, name); there {
			add("ce_"+name, value)
		}
	}
	if !e.Time().IsZero() {
		add("ce_time", types.FormatTime(e.Time()))
	}
	if e.DataContentType() != "" {
		add("content-type", e.DataContentType())
	}
	for name := range e.Extensions() {
		value, there := attribute(e, name)
		if !there {
			return nil, fmt.Errorf("extension %s has no text", name)
		}
		add("ce_"+name, value)
	}
	if key := jobevent.Extension(e, jobevent.ExtPartitionKey); key != "" {
		record.Key = []byte(key)
	}
	return record, nil
}
