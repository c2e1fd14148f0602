package gateway_test

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/jobweaver/jobweaver/functions/gateway"
	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/kafkaevent"
	"github.com/jobweaver/jobweaver/shared/kafkatest"
)

func TestRedrivenRecordIsUnchangedOnItsTopic(t *testing.T) {
	t.Parallel()
	kafka := kafkaevent.Config{Brokers: kafkatest.Brokers(t)}
	queue := kafkatest.Prefix() + "redriven"
	if err := kafkaevent.CreateTopics(t.Context(), kafka, jobevent.Topics([]string{queue})); err != nil {
		t.Fatal(err)
	}
	redrive, closing, err := funchost.NewRedrive(funchost.Config{Kafka: kafka}, gateway.Name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(closing)
	h := openWith(t, func(cfg *gateway.Config) { cfg.Redrive, cfg.Queues = redrive, []string{queue} })
	there := recordsOn(t, kafka, jobevent.RunTopic(queue))
	recorded := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
	r := h.reject(7, func(r *jobevent.Rejected) { r.Topic, r.RecordedAt = jobevent.RunTopic(queue), &recorded })
	h.post("/api/rejected/"+r.ID.String()+"/redrive", "").ok(http.StatusOK, nil)
	select {
	case m := <-there:
		var headers []string
		for _, header := range m.Headers {
			headers = append(headers, string(header.Key)+"="+string(header.Value))
		}
		if string(m.Key) != "k" || string(m.Value) != "\xff garbage" || !m.Timestamp.Equal(recorded) ||
			!slices.Equal(headers, []string{"who=stranger", "who=\xfe", "empty="}) {
			t.Errorf("there is %+v with %q", m, headers)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("nothing came")
	}
}

func recordsOn(t *testing.T, kafka kafkaevent.Config, topic string) <-chan *sarama.ConsumerMessage {
	t.Helper()
	tailer, err := kafkaevent.NewTailer(kafka, topic)
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan *sarama.ConsumerMessage, 10)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = tailer.Run(ctx, func(m *sarama.ConsumerMessage) { got <- m })
	}()
	t.Cleanup(func() { stop(); <-ended })
	select {
	case <-tailer.Started():
	case <-time.After(20 * time.Second):
		t.Fatal("the topic cannot be read")
	}
	return got
}
