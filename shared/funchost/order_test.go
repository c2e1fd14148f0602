package funchost

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/IBM/sarama"
	"github.com/cloudevents/sdk-go/v2/event"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/kafkaevent"
)

// The finish of a batch runs beside the next batch, which publishes at once if it rejects a record.
func TestABatchWithARejectedRecordPublishesAfterTheOneBefore(t *testing.T) {
	t.Parallel()
	for name, second := range map[string][]string{
		"a refused item": {"good", "bad"}, "a record that cannot be read": {"garbage", "good"},
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); synctest.Test(t, func(t *testing.T) { publishesInOrder(t, second) }) })
	}
}

func publishesInOrder(t *testing.T, second []string) {
	h, err := newHost(Config{FuncTransport: TransportHTTP, Sink: "http://127.0.0.1:1", Ticks: ticksOn}.withDefaults(), Function{
		Name: "test", Handle: func(_ context.Context, batch []jobevent.Item) (answers []jobevent.Item, err error) {
			for _, it := range batch {
				if it.ID() == "bad" {
					return nil, fmt.Errorf("store: %w", jobevent.ErrInvalid)
				}
				answers = append(answers, ofJob(t, jobevent.TypeStatus, "after "+it.ID(), it.JobID()))
			}
			return answers, nil
		},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer h.publisher.close()
	var published []string
	acknowledge := make(chan struct{})
	h.publisher.send = func(_ context.Context, events []event.Event) ([]event.Event, error) {
		<-acknowledge
		for _, e := range events {
			published = append(published, e.Type())
		}
		return events, nil
	}
	finish, err := h.consume(t.Context(), messages(t, "first"))
	if err != nil {
		t.Fatal(err)
	}
	handledErr := make(chan error, 1)
	go func() {
		finish, err := h.consume(t.Context(), messages(t, second...))
		if err == nil {
			err = finish()
		}
		handledErr <- err
	}()
	synctest.Wait()
	if len(published) > 0 {
		t.Errorf("%v is published before what follows from the batch before", published)
	}
	close(acknowledge)
	if err := finish(); err != nil {
		t.Fatal(err)
	}
	if err := <-handledErr; err != nil {
		t.Fatal(err)
	}
	if len(published) == 0 || published[0] != jobevent.TypeStatus || !slices.Contains(published, jobevent.TypeRejected) {
		t.Errorf("published %v", published)
	}
}

// A batch can have more items than one call of Handle: workers must not wait for the last item.
func TestTheEventsOfAPartArePublishedWhileTheNextIsHandled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sent, handled := make(chan int, 3), 0
		h, err := newHost(Config{FuncTransport: TransportHTTP, Sink: "http://127.0.0.1:1", Ticks: ticksOn}.withDefaults(), Function{
			Name: "test", Handle: func(_ context.Context, batch []jobevent.Item) (answers []jobevent.Item, err error) {
				if handled++; handled > 1 {
					<-sent // the events of the part before
				}
				for _, it := range batch {
					answers = append(answers, ofJob(t, jobevent.TypeDeadLettered, "after "+it.ID(), it.JobID()))
				}
				return answers, nil
			},
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer h.publisher.close()
		all := 0
		h.publisher.send = func(_ context.Context, events []event.Event) ([]event.Event, error) {
			all += len(events)
			sent <- len(events)
			return events, nil
		}
		ids := make([]string, 2*maxBatch+1)
		for i := range ids {
			ids[i] = fmt.Sprint(i)
		}
		finish, err := h.consume(t.Context(), messages(t, ids...))
		if err != nil {
			t.Fatal(err)
		}
		if err := finish(); err != nil {
			t.Fatal(err)
		}
		if handled != 3 || all != len(ids) {
			t.Errorf("handled %d parts and published %d events of %d", handled, all, len(ids))
		}
	})
}

// messages returns records of commands with these ids; garbage is not an event.
func messages(t *testing.T, ids ...string) []*sarama.ConsumerMessage {
	t.Helper()
	records := make([]*sarama.ConsumerMessage, len(ids))
	for i, it := range someJobs(t, len(ids)) {
		if ids[i] == "garbage" {
			records[i] = &sarama.ConsumerMessage{Topic: jobevent.TopicCreated, Value: []byte("garbage")}
			continue
		}
		record, err := kafkaevent.Encode(ofJob(t, jobevent.TypeCreated, ids[i], it.JobID()).Alone())
		if err != nil {
			t.Fatal(err)
		}
		records[i] = kafkaevent.Consumed(record)
	}
	return records
}
