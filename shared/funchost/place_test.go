package funchost

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/cloudevents/sdk-go/v2/event"
	"go.uber.org/goleak"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/kafkaevent"
	"github.com/jobweaver/jobweaver/shared/kafkatest"
	"github.com/jobweaver/jobweaver/shared/testwait"
)

func TestMain(m *testing.M) {
	if os.Getenv(processEnv) != "" {
		processMain()
		return
	}
	// The circuit breaker of a closed sarama producer goes on sleeping for ten seconds.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/eapache/go-resiliency/breaker.(*Breaker).timer"))
}

// place has topics for one test: a function consumes the queue in and publishes to the queue out.
type place struct {
	t       *testing.T
	cfg     Config
	name    string
	in, out string // queues
}

func newPlace(t *testing.T) *place {
	t.Helper()
	p := placeOn(t, kafkatest.Brokers(t))
	p.createTopics()
	return p
}

// createTopics creates the topics first: on Apache Kafka the order of the first events of a new topic is random.
func (p *place) createTopics() {
	p.t.Helper()
	topics := jobevent.Topics([]string{p.in, p.out})
	if err := kafkaevent.CreateTopics(testwait.Within(p.t, time.Minute), p.cfg.Kafka, topics); err != nil {
		p.t.Fatal(err)
	}
}

func placeOn(t *testing.T, brokers []string) *place {
	prefix := kafkatest.Prefix()
	return &place{
		t: t, name: prefix + "f", in: prefix + "in", out: prefix + "out",
		cfg: Config{
			Kafka: kafkaevent.Config{Brokers: brokers, ClientID: "test"}, NoListen: true,
		},
	}
}

// unpacked returns the items of an event.
func unpacked(t *testing.T, e event.Event) []jobevent.Item {
	t.Helper()
	items, err := jobevent.Unpack(e)
	if err != nil {
		t.Error(err)
	}
	return slices.DeleteFunc(items, func(it jobevent.Item) bool {
		if it.Err != nil {
			t.Error(it.Err)
		}
		return it.Err != nil
	})
}

// function returns a function that consumes the queue in.
func (p *place) function(handle Handle) Function {
	return Function{Name: p.name, Topics: []string{jobevent.RunTopic(p.in)}, Handle: handle}
}

// event returns an event for a queue. All have the same key, and so the same partition.
func (p *place) event(queue, id string) jobevent.Item {
	p.t.Helper()
	e, err := jobevent.New(jobevent.TypeRun, jobevent.Meta{Function: "test", ID: id, Key: "k", Queue: queue}, struct{}{})
	if err != nil {
		p.t.Fatal(err)
	}
	return e
}

// answers returns what a handler publishes for a batch: one event for each item, with the item's id.
func (p *place) answers(batch []jobevent.Item) []jobevent.Item {
	var events []jobevent.Item
	for _, e := range batch {
		events = append(events, p.event(p.out, e.ID()))
	}
	return events
}

// send publishes the items from … to-1 to the function, in a record each.
func (p *place) send(from, to int) {
	p.t.Helper()
	var events []event.Event
	for _, it := range p.events(from, to) {
		events = append(events, it.Alone())
	}
	p.sendEvents(events...)
}

// sendRaw publishes any record to the function's topic.
func (p *place) sendRaw(value []byte, headers ...sarama.RecordHeader) {
	p.t.Helper()
	cfg, err := p.cfg.Kafka.Sarama()
	if err != nil {
		p.t.Fatal(err)
	}
	producer, err := sarama.NewSyncProducer(p.cfg.Kafka.Brokers, cfg)
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = producer.Close() }()
	_, _, err = producer.SendMessage(&sarama.ProducerMessage{
		Topic: jobevent.RunTopic(p.in), Key: sarama.StringEncoder("k"), Value: sarama.ByteEncoder(value), Headers: headers,
	})
	if err != nil {
		p.t.Fatal(err)
	}
}

// run hosts f until the test ends or the returned function stops it, which returns Run's error.
func (p *place) run(f Function) (stop func() error) {
	p.t.Helper()
	return start(p.t, p.cfg, f)
}

func start(t *testing.T, cfg Config, f Function) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, cfg, f) }()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	t.Cleanup(func() { _ = stop() })
	return stop
}

// tail collects the events of this test that are published to a topic from now on.
func (p *place) tail(topic string, ours func(jobevent.Item) bool) *seen {
	t := p.t
	p.t.Helper()
	tailer, err := kafkaevent.NewTailer(p.cfg.Kafka, topic)
	if err != nil {
		p.t.Fatal(err)
	}
	got := newSeen()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		_ = tailer.Run(ctx, func(m *sarama.ConsumerMessage) {
			e, err := kafkaevent.Decode(m)
			if err != nil {
				return
			}
			for _, it := range unpacked(t, e) {
				if ours == nil || ours(it) {
					got.put(it.ID(), e)
				}
			}
		})
	})
	p.t.Cleanup(func() { cancel(); running.Wait() })
	select {
	case <-tailer.Started():
	case <-testwait.Within(p.t, time.Minute).Done():
		p.t.Fatal("the topic cannot be read")
	}
	return got
}

func (p *place) answered() *seen { return p.tail(jobevent.RunTopic(p.out), nil) }

// rejected collects the reports of this test's rejected records, by their offset.
func (p *place) rejected() *seen {
	return p.tail(jobevent.TopicDeadLetter, func(e jobevent.Item) bool {
		data, err := jobevent.Decode[jobevent.Rejected](e)
		return err == nil && data.Topic == jobevent.RunTopic(p.in)
	})
}

func numbers(from, to int) []string {
	var ids []string
	for n := from; n < to; n++ {
		ids = append(ids, fmt.Sprint(n))
	}
	return ids
}

// await fails the test when a channel stays empty.
func await[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-testwait.Within(t, time.Minute).Done():
		t.Fatalf("never: %s", what)
		panic("unreachable")
	}
}
