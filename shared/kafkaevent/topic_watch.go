package kafkaevent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"github.com/jobweaver/jobweaver/shared/telemetry"
)

const watchInterval = 5 * time.Second

var errRecreated = errors.New("topic was created again")

// topicWatch checks a consumer's topics. It creates missing ones, and a topic that was created again is read from its
// beginning. Without it a consumer at offset 50 would continue at 50 in the new topic if that has grown so far by then.
type topicWatch struct {
	consumer *GroupConsumer
	client   sarama.Client
	kick     chan struct{} // signalled by an error after which a topic may be missing
}

// run checks now and then, until ctx ends or a topic was created again (errRecreated).
func (w *topicWatch) run(ctx context.Context) error {
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-w.kick:
		case <-ctx.Done():
			return nil
		}
		err := w.check(ctx)
		if errors.Is(err, errRecreated) {
			return err
		}
		if ctx.Err() == nil {
			w.consumer.trouble.Note(ctx, err, "group", w.consumer.group)
		}
	}
}

func (w *topicWatch) check(ctx context.Context) error {
	found, err := w.describe(ctx)
	if err != nil {
		return err
	}
	var missing []string
	for _, topic := range found {
		if errors.Is(topic.Err, sarama.ErrUnknownTopicOrPartition) {
			missing = append(missing, topic.Name)
		}
	}
	if len(missing) > 0 {
		telemetry.Logger(ctx).InfoContext(ctx, "kafka topics are missing", "group", w.consumer.group, "topics", missing)
		if err := CreateTopics(ctx, w.consumer.cfg, ourTopics(w.consumer.cfg.bare(missing))); err != nil {
			return err
		}
		if found, err = w.describe(ctx); err != nil {
			return err
		}
	}
	if again := w.consumer.ids.compare(found); len(again) > 0 {
		telemetry.Logger(ctx).WarnContext(ctx, "kafka topics were created again: reading them from the beginning",
			"group", w.consumer.group, "topics", again)
		w.consumer.forget(again)
		return errRecreated
	}
	return nil
}

func (w *topicWatch) describe(ctx context.Context) ([]*sarama.TopicMetadata, error) {
	var found []*sarama.TopicMetadata
	err := bounded(ctx, func() error {
		// It is open. If it were opened here too, no code would close the connection if the client ends meanwhile.
		broker := w.client.LeastLoadedBroker()
		if broker == nil {
			return fmt.Errorf("describe topics: %w", sarama.ErrOutOfBrokers)
		}
		topics := w.consumer.cfg.ownNames(w.consumer.topics)
		answer, err := broker.GetMetadata(sarama.NewMetadataRequest(w.client.Config().Version, topics))
		if err != nil {
			_ = broker.Close() // otherwise the dead connection would be the least loaded one again
			return fmt.Errorf("describe topics: %w", err)
		}
		found = answer.Topics
		return nil
	})
	if err != nil {
		return nil, err // found may still be written
	}
	return found, nil
}

// logErrors drains what sarama reports until the group is closed. In an outage each partition reports, again and again.
func (w *topicWatch) logErrors(ctx context.Context, errs <-chan error) {
	for err := range errs {
		if errors.Is(err, sarama.ErrUnknownTopicOrPartition) {
			signal(w.kick)
		}
		w.consumer.trouble.Note(ctx, err, "group", w.consumer.group)
	}
}

// forget makes the held partitions of the topics lose their place: marks no longer count, and the commit at the
// end of their claim is zero.
func (c *GroupConsumer) forget(topics []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.parts {
		if slices.Contains(topics, p.claim.Topic()) {
			p.dead = true
			p.session.ResetOffset(p.claim.Topic(), p.ID, 0, "")
		}
	}
}

// topicIDs remembers, for as long as the consumer runs, which topics it has read: a topic that is
// deleted and created again has another id under the same name.
type topicIDs struct {
	mu    sync.Mutex
	seen  map[string]sarama.Uuid
	again map[string]bool // created again; the committed offsets may be the old one's
}

func newTopicIDs() *topicIDs {
	return &topicIDs{seen: map[string]sarama.Uuid{}, again: map[string]bool{}}
}

// compare returns the topics whose id is not the one seen before.
func (t *topicIDs) compare(found []*sarama.TopicMetadata) (again []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, topic := range found {
		if topic.Uuid == (sarama.Uuid{}) {
			continue // missing, or a broker without ids
		}
		if before, ok := t.seen[topic.Name]; ok && before != topic.Uuid {
			again = append(again, topic.Name)
			t.again[topic.Name] = true
		}
		t.seen[topic.Name] = topic.Uuid
	}
	return again
}

// rewind sets a new session's claims of such topics to the beginning, before they start.
func (t *topicIDs) rewind(s sarama.ConsumerGroupSession) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for topic := range t.again {
		for _, partition := range s.Claims()[topic] {
			s.ResetOffset(topic, partition, 0, "")
		}
	}
	clear(t.again)
}
