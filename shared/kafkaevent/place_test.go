package kafkaevent

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/cloudevents/sdk-go/v2/event"
	"go.uber.org/goleak"

	"github.com/jobweaver/jobweaver/infra/laptop/freeport"
	"github.com/jobweaver/jobweaver/infra/laptop/localkafka"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/kafkatest"
	"github.com/jobweaver/jobweaver/shared/testwait"
)

func TestMain(m *testing.M) {
	if place := os.Getenv(memberEnv); place != "" {
		beKilled(place)
	}
	goleak.VerifyTestMain(m)
}

// place has a queue's topic and a group that no other test uses.
type place struct {
	t     testing.TB
	cfg   Config
	queue string
	topic string
	group string
}

func newPlace(t testing.TB) *place {
	t.Helper()
	return placeOn(t, kafkatest.Brokers(t))
}

func placeOn(t testing.TB, brokers []string) *place {
	queue := kafkatest.Prefix() + "q"
	return &place{
		t: t, cfg: Config{Brokers: brokers, ClientID: "test"},
		queue: queue, topic: jobevent.RunTopic(queue), group: kafkatest.Prefix() + "g",
	}
}

// events are numbered from … to-1 in their ids, over as many keys.
func (p *place) events(from, to, keys int) []event.Event {
	p.t.Helper()
	var events []event.Event
	for n := from; n < to; n++ {
		e, err := jobevent.New(jobevent.TypeRun, jobevent.Meta{
			Function: "test", ID: strconv.Itoa(n), Key: fmt.Sprint("key", n%keys), Queue: p.queue,
		}, map[string]int{"n": n})
		if err != nil {
			p.t.Fatal(err)
		}
		single := e.Event() // a transport does not read the data
		single.SetType(jobevent.TypesRun)
		events = append(events, single)
	}
	return events
}

func (p *place) producer() *Producer {
	p.t.Helper()
	producer, err := NewProducer(p.cfg)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(producer.Close)
	return producer
}

func publish(t testing.TB, p *Producer, events []event.Event) {
	t.Helper()
	if err := p.Publish(testwait.Within(t, time.Minute), events); err != nil {
		t.Fatal(err)
	}
}

// admin calls do with an admin client.
func (p *place) admin(do func(sarama.ClusterAdmin) error) {
	p.t.Helper()
	client, err := openClient(p.cfg, func(s *sarama.Config) { s.Metadata.Full = true })
	if err != nil {
		p.t.Fatal(err)
	}
	admin, err := sarama.NewClusterAdminFromClient(client)
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = admin.Close() }()
	if err := do(admin); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) createTopic() {
	p.t.Helper()
	if err := CreateTopics(testwait.Within(p.t, time.Minute), p.cfg, ourTopics([]string{p.topic})); err != nil {
		p.t.Fatal(err)
	}
}

// deleteTopic wipes the topic and everything that was committed. Until the broker has received the deletion from its
// controller, it still accepts records, and loses them.
func (p *place) deleteTopic() {
	p.t.Helper()
	before := p.describe().Uuid
	p.admin(func(a sarama.ClusterAdmin) error { return a.DeleteTopic(p.topic) })
	until(testwait.Within(p.t, time.Minute), p.t, "the topic is gone", func() bool { return p.describe().Uuid != before })
}

// committed returns the sum of the group's committed offsets.
func (p *place) committed() (sum int64) {
	p.t.Helper()
	p.admin(func(a sarama.ClusterAdmin) error {
		answer, err := a.ListConsumerGroupOffsets(p.group, nil)
		if err != nil {
			return err
		}
		for _, block := range answer.Blocks[p.topic] {
			sum += max(block.Offset, 0)
		}
		return nil
	})
	return sum
}

// members returns the ids of the group's members.
func (p *place) members() (ids []string) {
	p.t.Helper()
	for id := range p.describeGroup().Members {
		ids = append(ids, id)
	}
	return ids
}

func (p *place) state() string { return p.describeGroup().State }

func (p *place) describeGroup() (found *sarama.GroupDescription) {
	p.t.Helper()
	p.admin(func(a sarama.ClusterAdmin) error {
		groups, err := a.DescribeConsumerGroups([]string{p.group})
		if err == nil {
			found = groups[0]
		}
		return err
	})
	return found
}

// describe returns the topic's metadata, without partitions if the topic is missing.
func (p *place) describe() (found *sarama.TopicMetadata) {
	p.t.Helper()
	p.admin(func(a sarama.ClusterAdmin) error {
		topics, err := a.DescribeTopics([]string{p.topic})
		if err == nil {
			found = topics[0]
		}
		return err
	})
	return found
}

func (p *place) partitions() int { return len(p.describe().Partitions) }

// broker is an embedded broker that can be stopped and started again on the same port with its data.
type broker struct {
	*place
	dir    string
	port   int
	server *localkafka.Server
}

func newBroker(t *testing.T) *broker {
	t.Helper()
	port, err := freeport.Pick()
	if err != nil {
		t.Fatal(err)
	}
	b := &broker{place: placeOn(t, nil), dir: t.TempDir(), port: port}
	b.start()
	t.Cleanup(b.stop)
	b.cfg.Brokers = b.server.Brokers()
	return b
}

func (b *broker) start() {
	b.t.Helper()
	var err error
	if b.server, err = localkafka.StartEmbedded(localkafka.Config{Dir: b.dir, Port: b.port}); err != nil {
		b.t.Fatal(err)
	}
}

func (b *broker) stop() {
	b.t.Helper()
	if b.server == nil {
		return
	}
	if err := b.server.Stop(); err != nil {
		b.t.Error(err)
	}
	b.server = nil
}

func (b *broker) wipe() {
	b.t.Helper()
	if err := os.RemoveAll(b.dir); err != nil {
		b.t.Fatal(err)
	}
}

// within returns a context that ends before the test would hang.
// until polls for a condition that nothing signals.
func until(ctx context.Context, t testing.TB, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("never: %s", what)
		}
	}
}
