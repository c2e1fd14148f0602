package funchost

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/cloudevents/sdk-go/v2/event"
	"go.uber.org/goleak"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/kafkaevent"
	"github.com/jobweaver/jobweaver/shared/kafkatest"
)

func TestMain(m *testing.M) {
	if os.Getenv(processEnv) != "" {
		processMain()
		return
	}
	// The circuit breaker of a closed sarama producer sleeps out its ten seconds.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/eapache/go-resiliency/breaker.(*Breaker).timer"))
}

// place is where one test has Kafka to itself: a function hears the queue in and says to the queue out.
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

// createTopics: the order of a topic's very first events would be a matter of luck on Apache Kafka.
func (p *place) createTopics() {
	p.t.Helper()
	topics := jobevent.Topics([]string{p.in, p.out})
	if err := kafkaevent.CreateTopics(within(p.t, time.Minute), p.cfg.Kafka, topics); err != nil {
		p.t.Fatal(err)
	}
}

func placeOn(t *testing.T, brokers []string) *place {
	prefix := kafkatest.Prefix()
	return &place{
		t: t, name: prefix + "f", in: prefix + "in", out: prefix + "out",
		cfg: Config{
			Kafka: kafkaevent.Config{Brokers: brokers, ClientID: "test"}, NoListen: true, EventsVersion: eventsVersion(t),
		},
	}
}

// eventsVersion lets all of these tests run with events of version 2, by EVENTS_VERSION.
func eventsVersion(t *testing.T) (version int) {
	t.Helper()
	if text := os.Getenv("EVENTS_VERSION"); text != "" {
		var err error
		if version, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	return version
}

// unpacked are the items of an event.
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

// function hears the queue in.
func (p *place) function(handle Handle) Function {
	return Function{Name: p.name, Topics: []string{jobevent.RunTopic(p.in)}, Handle: handle}
}

// event is of a queue; all have the same key, and so the same partition.
func (p *place) event(queue, id string) jobevent.Item {
	p.t.Helper()
	e, err := jobevent.New(jobevent.TypeRun, jobevent.Meta{Function: "test", ID: id, Key: "k", Queue: queue}, struct{}{})
	if err != nil {
		p.t.Fatal(err)
	}
	return e
}

// answers are what a handler says to a batch: one event each, with the id of the heard one.
func (p *place) answers(batch []jobevent.Item) []jobevent.Item {
	var say []jobevent.Item
	for _, e := range batch {
		say = append(say, p.event(p.out, e.ID()))
	}
	return say
}

// send has events of version 1 from … to-1 for the function: a record each.
func (p *place) send(from, to int) {
	p.t.Helper()
	var events []jobevent.Item
	for n := from; n < to; n++ {
		events = append(events, p.event(p.in, strconv.Itoa(n)))
	}
	cfg := p.cfg
	cfg.EventsVersion = 1
	publish, closing, err := NewPublisher(cfg)
	if err != nil {
		p.t.Fatal(err)
	}
	defer closing()
	if err := publish(within(p.t, time.Minute), events); err != nil {
		p.t.Fatal(err)
	}
}

// sendRaw puts any record before the function.
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

// run hosts f until the test, or the returned function, stops it. That gives Run's error.
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

// tail collects what is said on a topic from now on, of those events that are this test's.
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
	case <-within(p.t, time.Minute).Done():
		p.t.Fatal("the topic cannot be read")
	}
	return got
}

func (p *place) answered() *seen { return p.tail(jobevent.RunTopic(p.out), nil) }

// rejected collects the dead letters of this test's records, by their offset.
func (p *place) rejected() *seen {
	return p.tail(jobevent.TopicDeadLetter, func(e jobevent.Item) bool {
		data, err := jobevent.Decode[jobevent.Rejected](e)
		return err == nil && data.Topic == jobevent.RunTopic(p.in)
	})
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
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
	case <-within(t, time.Minute).Done():
		t.Fatalf("never: %s", what)
		panic("unreachable")
	}
}
