package funchost

import (
	"context"
	"slices"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/kafkaevent"
)

// Lag is the number of records of a topic that a function has not committed.
type Lag = kafkaevent.Lag

// Lags reads the lag of all functions.
type Lags func(context.Context) ([]Lag, error)

// NewLags returns the Lags of a function's broker; nil if events go through a sink, whose consumer groups belong to
// another system. It connects with the first read.
func NewLags(cfg Config) (read Lags, closing func()) {
	if cfg.Sink != "" {
		return nil, func() {}
	}
	lags := kafkaevent.NewLags(cfg.Kafka)
	return lags.Read, lags.Close
}

// QueueTopics creates and deletes the topics of queues. The zero value does nothing.
type QueueTopics struct{ kafka *kafkaevent.Config }

// NewQueueTopics returns the QueueTopics of a function's broker. If events go through a sink, the topics behind it
// belong to another system, and it does nothing.
func NewQueueTopics(cfg Config) QueueTopics {
	if cfg.Sink != "" {
		return QueueTopics{}
	}
	return QueueTopics{&cfg.Kafka}
}

// Create creates the topic of a queue if it is missing.
func (t QueueTopics) Create(ctx context.Context, queue string) error {
	if t.kafka == nil {
		return nil
	}
	topics := slices.DeleteFunc(jobevent.Topics([]string{queue}), func(topic jobevent.Topic) bool {
		return topic.Name != jobevent.RunTopic(queue)
	})
	return kafkaevent.CreateTopics(ctx, *t.kafka, topics)
}

// Delete deletes the topic of a queue, and the place of its workers in it.
func (t QueueTopics) Delete(ctx context.Context, queue string) error {
	if t.kafka == nil {
		return nil
	}
	return kafkaevent.DeleteTopic(ctx, *t.kafka, jobevent.RunTopic(queue), jobevent.RunGroup(queue))
}

// Queues returns the queues that have a topic.
func (t QueueTopics) Queues(ctx context.Context) ([]string, error) {
	if t.kafka == nil {
		return nil, nil
	}
	return kafkaevent.Queues(ctx, *t.kafka)
}
