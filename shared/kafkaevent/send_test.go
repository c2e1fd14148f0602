package kafkaevent

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/testwait"
)

func TestALargeBatchGoesInPartsAndInOrder(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.createTopic()
	const n = 30
	events := p.events(0, n, 1)
	body, err := json.Marshal(string(bytes.Repeat([]byte("x"), MessageLimit/4)))
	if err != nil {
		t.Fatal(err)
	}
	for i := range events {
		events[i].DataEncoded = body
	}
	publish(t, p.producer(), events)
	got := newSeen()
	p.member(500, got.handle)
	got.wait(testwait.Within(t, time.Minute), t, n)
	if err := got.inOrder(); err != nil {
		t.Error(err)
	}
}

func TestWhatWaitsForABrokerGoesTogetherAndInOrder(t *testing.T) {
	t.Parallel()
	one, other := topicPartition{"t", 1}, topicPartition{"t", 2}
	of := func(at topicPartition, bytes, limit int) *chunk {
		return &chunk{topicPartition: at, bytes: bytes, limit: limit}
	}
	chunks := []*chunk{
		of(one, 10, 100), of(one, 10, 100), of(other, 200, 100), of(one, 90, 100), of(one, 10, 100), of(other, 10, 15),
		of(other, 10, 100), of(one, requestMost, requestMost),
	}
	w := &brokerSender{c: &connection{}, waiting: chunks, isBusy: true}
	for i, want := range []map[topicPartition][]*chunk{
		{one: chunks[:2], other: chunks[2:3]},
		{one: chunks[3:5], other: chunks[5:6]},
		{other: chunks[6:7]},
		{one: chunks[7:]},
	} {
		if got := w.load(); !maps.EqualFunc(got, want, slices.Equal) || !w.isBusy {
			t.Errorf("request %d has %v, want %v", i, got, want)
		}
	}
	if last := w.load(); len(last) != 0 || w.isBusy {
		t.Errorf("at last %v", last)
	}
}

func TestWhatFailedOrWasNotSentComesBackInItsOrder(t *testing.T) {
	t.Parallel()
	messages := []*sarama.ProducerMessage{{Offset: 0}, {Offset: 1}, {Offset: 2}, {Offset: 3}, {Offset: 4}}
	sent := new(sync.WaitGroup)
	failed := undelivered([]*chunk{
		{messages: []*sarama.ProducerMessage{messages[1], messages[3]}, err: sarama.ErrNotLeaderForPartition, answered: sent},
		{messages: messages[2:3], answered: sent},
		{messages: messages[:1], err: sarama.ErrRequestTimedOut, answered: sent},
		{messages: messages[4:]},
	}, messages)
	if want := []*sarama.ProducerMessage{messages[0], messages[1], messages[3], messages[4]}; !slices.Equal(failed, want) {
		t.Errorf("%v", failed)
	}
}

func TestNothingIsSentOnAConnectionThatHasFailed(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.createTopic()
	producer := p.producer()
	publish(t, producer, p.events(0, 1, 1))
	conn, err := producer.connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.users.Done()
	producer.drop(conn)
	messages := make([]*sarama.ProducerMessage, 2)
	for i, e := range p.events(1, 3, 1) {
		if messages[i], err = Encode(e); err != nil {
			t.Fatal(err)
		}
	}
	if failed, err := conn.send(t.Context(), messages, producerLimit); !errors.Is(err, errRetired) || !slices.Equal(failed, messages) {
		t.Errorf("%d failed: %v", len(failed), err)
	}
	publish(t, producer, p.events(1, 3, 1))
	got := newSeen()
	p.member(500, got.handle)
	got.wait(testwait.Within(t, time.Minute), t, 3)
	if n := got.duplicates(); n != 0 {
		t.Errorf("%d twice", n)
	}
}

// A topic that another program created may have a lower size limit than ours: a batch that is too large for it is
// divided, and only a single message that is too large is refused.
func TestATopicThatTakesLess(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	limit := strconv.Itoa(64 << 10)
	p.admin(func(a sarama.ClusterAdmin) error {
		return a.CreateTopic(p.topic, &sarama.TopicDetail{
			NumPartitions: 1, ReplicationFactor: 1, ConfigEntries: map[string]*string{"max.message.bytes": &limit},
		}, false)
	})
	body, err := json.Marshal(string(bytes.Repeat([]byte("x"), 20<<10)))
	if err != nil {
		t.Fatal(err)
	}
	events := p.events(0, 20, 1)
	for i := range events {
		events[i].DataEncoded = body
	}
	producer := p.producer()
	publish(t, producer, events)
	large := p.events(20, 21, 1)
	large[0].DataEncoded = slices.Concat([]byte(`"`), bytes.Repeat([]byte("x"), 70<<10), []byte(`"`))
	if err := producer.Publish(testwait.Within(t, time.Minute), large); !errors.Is(err, jobevent.ErrInvalid) {
		t.Errorf("too large: %v", err)
	}
	got := newSeen()
	p.member(500, got.handle)
	got.wait(testwait.Within(t, time.Minute), t, 20)
	if err := got.inOrder(); err != nil {
		t.Error(err)
	}
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	one, two := &chunk{messages: make([]*sarama.ProducerMessage, 1)}, &chunk{messages: make([]*sarama.ProducerMessage, 2)}
	for _, c := range []struct {
		block *sarama.ProduceResponseBlock
		of    []*chunk
		want  error
	}{
		{nil, []*chunk{one}, sarama.ErrIncompleteResponse},
		{&sarama.ProduceResponseBlock{}, []*chunk{one}, nil},
		{&sarama.ProduceResponseBlock{Err: sarama.ErrMessageSizeTooLarge}, []*chunk{one}, sarama.ErrMessageSizeTooLarge},
		{&sarama.ProduceResponseBlock{Err: sarama.ErrMessageSetSizeTooLarge}, []*chunk{one}, sarama.ErrMessageSizeTooLarge},
		{&sarama.ProduceResponseBlock{Err: sarama.ErrMessageSizeTooLarge}, []*chunk{one, one}, errCrowded},
		{&sarama.ProduceResponseBlock{Err: sarama.ErrMessageSetSizeTooLarge}, []*chunk{two}, errCrowded},
		{
			&sarama.ProduceResponseBlock{Err: sarama.ErrTopicAuthorizationFailed}, []*chunk{two},
			sarama.ErrTopicAuthorizationFailed,
		},
	} {
		if got := verdict(c.block, c.of); !errors.Is(got, c.want) {
			t.Errorf("%+v: %v", c.block, got)
		}
	}
}
