package localkafka_test

import (
	"net"
	"runtime"
	"testing"

	"github.com/IBM/sarama"

	"github.com/jobweaver/jobweaver/infra/laptop/localkafka"
	"github.com/jobweaver/jobweaver/shared/testwait"
)

type dial func(network, addr string) (net.Conn, error)

func (d dial) Dial(network, addr string) (net.Conn, error) { return d(network, addr) }

// inMemory returns a client of a broker in memory, and its configuration.
func inMemory(t *testing.T, limit int64) sarama.Client {
	t.Helper()
	s, err := localkafka.StartInMemory(limit)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop() })
	cfg := sarama.NewConfig()
	cfg.Version = sarama.V2_8_0_0
	cfg.Consumer.Offsets.Initial = sarama.OffsetOldest
	cfg.Producer.Return.Successes = true
	cfg.Producer.Partitioner = sarama.NewRoundRobinPartitioner
	cfg.Net.Proxy.Enable, cfg.Net.Proxy.Dialer = true, dial(s.Dial)
	c, err := sarama.NewClient(s.Brokers(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// fill creates a topic with 12 partitions, and sends records of 100 kB to it.
func fill(t *testing.T, c sarama.Client, name string, records int) {
	t.Helper()
	admin, err := sarama.NewClusterAdminFromClient(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := admin.CreateTopic(name, &sarama.TopicDetail{NumPartitions: 12, ReplicationFactor: 1}, false); err != nil {
		t.Fatal(err)
	}
	p, err := sarama.NewSyncProducerFromClient(c)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	value := make([]byte, 100_000)
	for range records {
		_, _, err := p.SendMessage(&sarama.ProducerMessage{Topic: name, Value: sarama.ByteEncoder(value)})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// kept returns how many records of a topic the broker has.
func kept(t *testing.T, c sarama.Client, name string) (records int64) {
	t.Helper()
	for p := range int32(12) {
		newest, err := c.GetOffset(name, p, sarama.OffsetNewest)
		if err != nil {
			t.Fatal(err)
		}
		oldest, err := c.GetOffset(name, p, sarama.OffsetOldest)
		if err != nil {
			t.Fatal(err)
		}
		records += newest - oldest
	}
	return records
}

// It is not parallel: it measures the memory of the process.
func TestMemoryIsBoundedWhenNoGroupReads(t *testing.T) {
	const limit = 16 << 20
	c := inMemory(t, limit)
	before := heap()
	fill(t, c, "unread", 1000) // 100 MB
	testwait.Until(t, "what is over the limit is gone", func() bool { return kept(t, c, "unread")*100_000 <= limit })
	if left := kept(t, c, "unread"); left < 50 {
		t.Errorf("of 160 records that fit, the broker has %d", left)
	}
	// Beside the records: a segment of each partition that is deleted in part.
	if grown := heap() - before; grown > 2*limit {
		t.Errorf("with a limit of 16 MiB the broker needs %d MiB", grown>>20)
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestWhatIsReadIsNotKeptInMemory(t *testing.T) {
	t.Parallel()
	c := inMemory(t, 64<<20)
	fill(t, c, topic, 120)
	group, err := sarama.NewConsumerGroupFromClient("reader", c)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = group.Consume(t.Context(), []string{topic}, readAll{})
	}()
	t.Cleanup(func() {
		_ = group.Close()
		<-done
	})
	testwait.Until(t, "what the group has read is gone", func() bool { return kept(t, c, topic) == 0 })
}

type readAll struct{}

func (readAll) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (readAll) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (readAll) ConsumeClaim(s sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for m := range claim.Messages() {
		s.MarkMessage(m, "")
	}
	return nil
}
