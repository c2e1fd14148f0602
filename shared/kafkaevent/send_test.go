package kafkaevent

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/IBM/sarama"
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
	got.wait(within(t, time.Minute), t, n)
	if err := got.inOrder(); err != nil {
		t.Error(err)
	}
}

func TestWhatWaitsForABrokerGoesTogetherAndInOrder(t *testing.T) {
	t.Parallel()
	one, other := topicPartition{"t", 1}, topicPartition{"t", 2}
	parcels := []*parcel{
		{topicPartition: one, bytes: 10}, {topicPartition: one, bytes: 10}, {topicPartition: other, bytes: producerLimit},
		{topicPartition: one, bytes: producerLimit}, {topicPartition: one, bytes: 10}, {topicPartition: other, bytes: 10},
	}
	w := &way{waiting: parcels, isBusy: true}
	first, second, third := w.load(), w.load(), w.load()
	if a, b := first[one], first[other]; len(a) != 2 || a[0] != parcels[0] || a[1] != parcels[1] || len(b) != 1 || b[0] != parcels[2] {
		t.Errorf("first %v", first)
	}
	if a, b := second[one], second[other]; len(a) != 1 || a[0] != parcels[3] || len(b) != 1 || b[0] != parcels[5] {
		t.Errorf("then %v", second)
	}
	if a := third[one]; len(third) != 1 || len(a) != 1 || a[0] != parcels[4] || !w.isBusy {
		t.Errorf("then %v", third)
	}
	if last := w.load(); len(last) != 0 || w.isBusy {
		t.Errorf("at last %v", last)
	}
}

func TestSequenceNumbersBeginAgain(t *testing.T) {
	t.Parallel()
	at := topicPartition{"t", 0}
	c := &connection{sequences: map[topicPartition]int32{at: math.MaxInt32 - 1}}
	if a, b, d := c.number(at, 3), c.number(at, 5), c.number(at, 1); a != math.MaxInt32-1 || b != 1 || d != 6 {
		t.Errorf("%d, %d, %d", a, b, d)
	}
}

func TestWhatFailedComesBackInItsOrder(t *testing.T) {
	t.Parallel()
	messages := []*sarama.ProducerMessage{{Offset: 0}, {Offset: 1}, {Offset: 2}, {Offset: 3}}
	failed, err := undelivered([]*parcel{
		{messages: []*sarama.ProducerMessage{messages[1], messages[3]}, err: sarama.ErrNotLeaderForPartition},
		{messages: messages[2:3]},
		{messages: messages[:1], err: sarama.ErrOutOfOrderSequenceNumber},
	}, messages)
	if len(failed) != 3 || failed[0] != messages[0] || failed[1] != messages[1] || failed[2] != messages[3] {
		t.Errorf("%v", failed)
	}
	if !errors.Is(err, sarama.ErrNotLeaderForPartition) || !errors.Is(err, sarama.ErrOutOfOrderSequenceNumber) {
		t.Error(err)
	}
}

// What Kafka says twice under one number it keeps once.
func TestABatchThatTheBrokerHasIsNotKeptTwice(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.createTopic()
	producer := p.producer()
	publish(t, producer, p.events(0, 3, 1))
	conn, err := producer.connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.users.Done()
	conn.mu.Lock()
	clear(conn.sequences) // as if the answer had been lost
	conn.mu.Unlock()
	messages, err := encodeAll(p.events(0, 3, 1))
	if err != nil {
		t.Fatal(err)
	}
	if failed, err := conn.send(messages); err != nil {
		t.Fatalf("%d failed: %v", len(failed), err)
	}
	publish(t, producer, p.events(3, 4, 1))
	got := newSeen()
	p.member(500, got.handle)
	got.wait(within(t, time.Minute), t, 4)
	if n := got.duplicates(); n != 0 {
		t.Errorf("%d records are there twice", n)
	}
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		block *sarama.ProduceResponseBlock
		want  error
	}{
		{nil, sarama.ErrIncompleteResponse},
		{&sarama.ProduceResponseBlock{}, nil},
		{&sarama.ProduceResponseBlock{Err: sarama.ErrDuplicateSequenceNumber}, nil},
		{&sarama.ProduceResponseBlock{Err: sarama.ErrTopicAuthorizationFailed}, sarama.ErrTopicAuthorizationFailed},
	} {
		if got := verdict(c.block); !errors.Is(got, c.want) {
			t.Errorf("%+v: %v", c.block, got)
		}
	}
}
