package kafkaevent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/kafkatest"
	"github.com/jobweaver/jobweaver/shared/testwait"
)

func TestPublishCreatesAMissingTopic(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	producer := p.producer()
	publish(t, producer, p.events(0, 1000, 7))
	if n := p.partitions(); n != jobevent.RunPartitions {
		t.Errorf("topic has %d partitions", n)
	}
	p.deleteTopic()
	publish(t, producer, p.events(1000, 1010, 7))
	if n := p.partitions(); n != jobevent.RunPartitions {
		t.Errorf("topic has %d partitions after it was deleted", n)
	}
}

func TestPublishFromManyGoroutinesAtOnce(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.createTopic()
	producer := p.producer()
	var group sync.WaitGroup
	for i := range 100 {
		group.Go(func() { publish(t, producer, p.events(100*i, 100*(i+1), 7)) })
	}
	group.Wait()
	got := newSeen()
	p.member(500, got.handle)
	got.wait(testwait.Within(t, time.Minute), t, 10_000)
}

func TestARoutingKeyChoosesThePartition(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	events := p.events(0, jobevent.RunPartitions, 1)
	for i := range events {
		events[i].SetExtension(jobevent.ExtPartitionKey, jobevent.RoutingKey(int32(i)))
	}
	publish(t, p.producer(), events)
	m := p.member(1, newSeen().handle)
	until(testwait.Within(t, time.Minute), t, "one record in each partition", func() bool {
		n := 0
		for _, part := range m.Group().Partitions() {
			if part.claim.HighWaterMarkOffset() == 1 {
				n++
			}
		}
		return n == jobevent.RunPartitions
	})
}

func TestThePublishedSizeIsLimited(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.createTopic()
	producer := p.producer()
	sized := func(bytes_ int) error {
		events := p.events(0, 1, 1)
		body, err := json.Marshal(string(bytes.Repeat([]byte("x"), bytes_)))
		if err != nil {
			t.Fatal(err)
		}
		events[0].DataEncoded = body
		return producer.Publish(testwait.Within(t, time.Minute), events)
	}
	if err := sized(MessageLimit - 2); err != nil {
		t.Errorf("a record at the limit: %v", err)
	}
	if err := sized(MessageLimit + 100<<10); !errors.Is(err, jobevent.ErrInvalid) {
		t.Errorf("a record beyond the limit: %v", err)
	}
	got := newSeen()
	p.member(500, got.handle)
	got.wait(testwait.Within(t, time.Minute), t, 1)
}

func TestPublishIsBoundedWhileTheBrokerIsAway(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	producer := b.producer()
	publish(t, producer, b.events(0, 1, 1))
	b.stop()
	var group sync.WaitGroup
	for range 2 * maxPublishing {
		group.Go(func() {
			ctx := testwait.Within(t, 100*time.Millisecond)
			err := producer.Publish(ctx, b.events(1, 2, 1))
			if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), b.topic) {
				t.Errorf("published to a dead broker: %v", err)
			}
		})
	}
	group.Wait()
	if err := producer.Publish(context.Background(), b.events(1, 2, 1)); err == nil {
		t.Error("published to a dead broker")
	}
	b.start()
	until(testwait.Within(t, time.Minute), t, "published again", func() bool {
		return producer.Publish(context.Background(), b.events(1, 2, 1)) == nil
	})
}

func TestCloseDoesNotWaitForAFrozenBroker(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	producer := b.producer()
	publish(t, producer, b.events(0, 1, 1))
	b.stop()
	frozen, err := net.Listen("tcp", b.cfg.Brokers[0]) // the kernel accepts connections, and nothing reads from them
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = frozen.Close() }()
	if err := producer.Publish(testwait.Within(t, 100*time.Millisecond), b.events(1, 2, 1)); err == nil {
		t.Error("published to a frozen broker")
	}
	began := time.Now()
	producer.Close()
	if took := time.Since(began); took > leaveTimeout+5*time.Second {
		t.Errorf("closed in %s", took)
	}
}

func TestAProducerOutlivesAWipedBroker(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	producer := b.producer()
	publish(t, producer, b.events(0, 10, 3))
	b.stop()
	b.wipe()
	b.start()
	publish(t, producer, b.events(10, 20, 3))
	publish(t, producer, b.events(20, 30, 3))
	got := newSeen()
	b.member(500, got.handle)
	got.wait(testwait.Within(t, time.Minute), t, 20)
}

func TestAClosedProducerPublishesNothing(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	producer := p.producer()
	publish(t, producer, p.events(0, 1, 1))
	producer.Close()
	if err := producer.Publish(context.Background(), p.events(1, 2, 1)); err == nil {
		t.Error("published after Close")
	}
}

// BenchmarkPublish publishes many statuses of jobs at once: the status is the only event between functions that is not
// packed.
func BenchmarkPublish(b *testing.B) {
	producer, err := NewProducer(Config{Brokers: kafkatest.Brokers(b), ClientID: "test"})
	if err != nil {
		b.Fatal(err)
	}
	defer producer.Close()
	for _, n := range []int{1, 20, 500} {
		events := make([]event.Event, n)
		for i := range events {
			job := uuid.Must(uuid.NewV7())
			status, err := jobevent.New(jobevent.TypeStatus, jobevent.Meta{
				Function: "outcome", ID: jobevent.RunID(job, 1), JobID: job, TraceID: job, Key: job.String(),
			}, map[string]string{"jobId": job.String(), "rest": strings.Repeat("x", 600)})
			if err != nil {
				b.Fatal(err)
			}
			events[i] = status.Event()
		}
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			b.ReportAllocs()
			before := processorTime(b)
			for b.Loop() {
				if err := producer.Publish(b.Context(), events); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64((processorTime(b)-before).Nanoseconds())/float64(b.N*n), "cpu-ns/event")
		})
	}
}

// processorTime returns the processor time of this process, including the embedded broker in it.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
