package kafkaevent

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

// Sarama's own producers lead every message through some seven channels, which costs more than all that is done with
// it. Here a batch of messages stays one: it is split by partition, and each broker gets what there is for it in one
// request. As with sarama's idempotent producer, one request a broker is on its way at a time, and a connection that
// has failed with anything is given up with its sequence numbers.

const (
	produceVersion = 8 // of the request: Kafka 2.4 and later
	brokerTimeout  = 10 * time.Second
)

// parcel is what one call sends to one partition, in one batch of records.
type parcel struct {
	topicPartition
	messages []*sarama.ProducerMessage
	bytes    int
	err      error
	answered *sync.WaitGroup
}

// send returns the messages of which the broker has not said that it has them, in their order, and why.
func (c *connection) send(messages []*sarama.ProducerMessage) (failed []*sarama.ProducerMessage, err error) {
	parcels, err := c.pack(messages)
	if err != nil {
		return messages, err
	}
	var answered sync.WaitGroup
	for _, p := range parcels {
		leader, err := c.client.Leader(p.topic, p.id)
		if err != nil {
			p.err = err
			continue
		}
		p.answered = &answered
		answered.Add(1)
		c.to(leader).take(c, leader, p)
	}
	answered.Wait()
	return undelivered(parcels, messages)
}

func undelivered(parcels []*parcel, messages []*sarama.ProducerMessage) (failed []*sarama.ProducerMessage, err error) {
	var causes []error
	again := map[*sarama.ProducerMessage]bool{}
	for _, p := range parcels {
		if p.err == nil {
			continue
		}
		causes = append(causes, fmt.Errorf("partition %d: %w", p.id, p.err))
		for _, m := range p.messages {
			again[m] = true
		}
	}
	if len(causes) == 0 {
		return nil, nil
	}
	for _, m := range messages {
		if again[m] {
			failed = append(failed, m)
		}
	}
	return failed, errors.Join(causes...)
}

// pack splits messages by partition, and where they are more than a batch may weigh.
func (c *connection) pack(messages []*sarama.ProducerMessage) ([]*parcel, error) {
	var parcels []*parcel
	var topic string
	var partitions int32
	var partitioner sarama.Partitioner
	open := map[topicPartition]*parcel{}
	for _, m := range messages {
		if m.Topic != topic {
			all, err := c.client.Partitions(m.Topic)
			if err != nil {
				return nil, err
			}
			topic, partitions = m.Topic, int32(len(all))
			partitioner = c.client.Config().Producer.Partitioner(topic)
		}
		if partitions == 0 {
			return nil, sarama.ErrLeaderNotAvailable
		}
		id, err := partitioner.Partition(m, partitions)
		if err != nil {
			return nil, err
		}
		to, size := topicPartition{topic, id}, m.ByteSize(recordVersion)
		p := open[to]
		if p == nil || p.bytes+size > producerLimit {
			p = &parcel{topicPartition: to}
			open[to] = p
			parcels = append(parcels, p)
		}
		p.messages, p.bytes = append(p.messages, m), p.bytes+size
	}
	return parcels, nil
}

// to is the way to a broker.
func (c *connection) to(leader *sarama.Broker) *way {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.ways[leader.ID()]
	if w == nil {
		w = &way{}
		c.ways[leader.ID()] = w
	}
	return w
}

// way leads to one broker. While a request is under way, the next parcels wait, and go together.
type way struct {
	mu      sync.Mutex
	waiting []*parcel
	isBusy  bool
}

func (w *way) take(c *connection, leader *sarama.Broker, p *parcel) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting = append(w.waiting, p)
	if !w.isBusy {
		w.isBusy = true
		go w.run(c, leader)
	}
}

// run sends until nothing waits.
func (w *way) run(c *connection, leader *sarama.Broker) {
	for {
		batches := w.load()
		if len(batches) == 0 {
			return
		}
		c.produce(leader, batches)
	}
}

// load takes what fits into one request, which has one batch a partition: parcels for the same one go into the same
// batch, or in their order into the next requests.
func (w *way) load() map[topicPartition][]*parcel {
	w.mu.Lock()
	defer w.mu.Unlock()
	batches, bytes := map[topicPartition][]*parcel{}, map[topicPartition]int{}
	var later []*parcel
	for _, p := range w.waiting {
		if bytes[p.topicPartition] > 0 && bytes[p.topicPartition]+p.bytes > producerLimit {
			bytes[p.topicPartition] = producerLimit // nor does a smaller one overtake it
			later = append(later, p)
			continue
		}
		batches[p.topicPartition] = append(batches[p.topicPartition], p)
		bytes[p.topicPartition] += p.bytes
	}
	w.waiting = later
	w.isBusy = len(batches) > 0
	return batches
}

func (c *connection) produce(leader *sarama.Broker, batches map[topicPartition][]*parcel) {
	request := &sarama.ProduceRequest{
		Version: produceVersion, RequiredAcks: sarama.WaitForAll, Timeout: int32(brokerTimeout.Milliseconds()),
	}
	for at, parcels := range batches {
		request.AddBatch(at.topic, at.id, c.batchOf(at, parcels))
	}
	answer, err := leader.Produce(request)
	for at, parcels := range batches {
		failure := err
		if failure == nil {
			failure = verdict(answer.GetBlock(at.topic, at.id))
		}
		for _, p := range parcels {
			p.err = failure
			p.answered.Done()
		}
	}
}

// verdict is what a broker says of a batch. It has one whose number it knows.
func verdict(block *sarama.ProduceResponseBlock) error {
	switch {
	case block == nil:
		return sarama.ErrIncompleteResponse
	case block.Err == sarama.ErrNoError || block.Err == sarama.ErrDuplicateSequenceNumber:
		return nil
	default:
		return block.Err
	}
}

// batchOf gives the records their numbers. Whatever fails, the connection is not used again.
func (c *connection) batchOf(at topicPartition, parcels []*parcel) *sarama.RecordBatch {
	n, headers := 0, 0
	for _, p := range parcels {
		n += len(p.messages)
		for _, m := range p.messages {
			headers += len(m.Headers)
		}
	}
	now := time.Now()
	batch := &sarama.RecordBatch{
		Version: recordVersion, FirstTimestamp: now, MaxTimestamp: now, ProducerID: c.id, ProducerEpoch: c.epoch,
		FirstSequence: c.number(at, n), LastOffsetDelta: int32(n - 1), Records: make([]*sarama.Record, 0, n),
	}
	records, pointers := make([]sarama.Record, n), make([]*sarama.RecordHeader, 0, headers)
	for _, p := range parcels {
		for _, m := range p.messages {
			first := len(pointers)
			for i := range m.Headers {
				pointers = append(pointers, &m.Headers[i])
			}
			r := &records[len(batch.Records)]
			r.OffsetDelta = int64(len(batch.Records))
			r.Headers = pointers[first:len(pointers):len(pointers)]
			r.Key, r.Value = bytesOf(m.Key), bytesOf(m.Value)
			batch.Records = append(batch.Records, r)
		}
	}
	return batch
}

// number gives the first of n sequence numbers of a partition. They begin again at zero after the highest.
func (c *connection) number(at topicPartition, n int) int32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := c.sequences[at]
	c.sequences[at] = int32((int64(first) + int64(n)) & (1<<31 - 1))
	return first
}

// bytesOf reads what is bytes already.
func bytesOf(e sarama.Encoder) []byte {
	if e == nil {
		return nil
	}
	b, _ := e.Encode() // a ByteEncoder or a StringEncoder, which never fail
	return b
}
