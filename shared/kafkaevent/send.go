package kafkaevent

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// Sarama's own producers pass every message through some seven channels, which costs more than the rest of sending it.
// Here a batch of messages stays together: it is split by partition, and each broker receives its part in one request.
// One request at a time is under way to each broker, which keeps the order. Once a request has failed, the messages
// that wait on the connection fail too.

const (
	produceVersion = 8 // of the request: Kafka 2.4 and later
	brokerTimeout  = 10 * time.Second
	requestMost    = 16 << 20 // bytes of one request, or one chunk
)

var (
	errRetired = errors.New("the connection has failed with something else")
	// errCrowded: a batch is too large for its topic, which JobWeaver did not create, although none of its messages is.
	errCrowded = errors.New("a batch is too large for its topic")
)

// topicPartition names a partition.
type topicPartition struct {
	topic string
	id    int32
}

// chunk has the messages that one call sends to one partition in one batch of records.
type chunk struct {
	topicPartition
	messages []*sarama.ProducerMessage
	bytes    int
	limit    int // of the batch, in bytes
	err      error
	answered *sync.WaitGroup // nil: its turn has not come
}

func (p *chunk) answer(err error) {
	p.err = err
	p.answered.Done()
}

// send returns the messages that the broker has not acknowledged, in their order, and the reason. No batch is larger
// than limit, unless one message is. It sends no further message once ctx has ended: the caller may be about to send
// later messages.
func (c *connection) send(
	ctx context.Context, messages []*sarama.ProducerMessage, limit int,
) (failed []*sarama.ProducerMessage, err error) {
	chunks, err := c.pack(messages, limit)
	if err != nil {
		return messages, err
	}
	for rest := chunks; len(rest) > 0; {
		if err := ctx.Err(); err != nil {
			return undelivered(chunks, messages), err
		}
		if rest, err = c.sendFirst(rest); err != nil {
			return undelivered(chunks, messages), err
		}
	}
	return nil, nil
}

// sendFirst sends the first chunk for each partition. The next chunks wait for its answer: they must not be stored
// without it.
func (c *connection) sendFirst(chunks []*chunk) (rest []*chunk, err error) {
	var answered sync.WaitGroup
	first, loads := map[topicPartition]*chunk{}, map[*brokerSender][]*chunk{}
	for _, p := range chunks {
		if first[p.topicPartition] != nil {
			rest = append(rest, p)
			continue
		}
		first[p.topicPartition] = p
		p.answered = &answered
		leader, err := c.client.Leader(p.topic, p.id)
		if err != nil {
			p.err = err
			continue
		}
		answered.Add(1)
		w := c.to(leader)
		loads[w] = append(loads[w], p)
	}
	for w, load := range loads {
		w.take(load)
	}
	answered.Wait()
	var causes []error
	for at, p := range first {
		if p.err != nil {
			causes = append(causes, fmt.Errorf("%s/%d: %w", at.topic, at.id, p.err))
		}
	}
	return rest, errors.Join(causes...)
}

// undelivered returns the messages of chunks that were not sent or failed.
func undelivered(chunks []*chunk, messages []*sarama.ProducerMessage) (failed []*sarama.ProducerMessage) {
	there := map[*sarama.ProducerMessage]bool{}
	for _, p := range chunks {
		for _, m := range p.messages {
			there[m] = p.answered != nil && p.err == nil
		}
	}
	for _, m := range messages {
		if !there[m] {
			failed = append(failed, m)
		}
	}
	return failed
}

// pack splits messages by partition, and at the limit of a batch's size.
func (c *connection) pack(messages []*sarama.ProducerMessage, limit int) ([]*chunk, error) {
	var chunks []*chunk
	known, open := map[string]int32{}, map[topicPartition]*chunk{}
	for _, m := range messages {
		if known[m.Topic] == 0 {
			n, err := c.partitions(m.Topic)
			if err != nil {
				return nil, err
			}
			known[m.Topic] = n
		}
		id := rand.Int32N(known[m.Topic])
		if m.Key != nil {
			id = jobevent.PartitionOf(string(bytesOf(m.Key)), known[m.Topic])
		}
		to, size := topicPartition{m.Topic, id}, m.ByteSize(recordVersion)
		p := open[to]
		if p == nil || p.bytes+size > limit {
			p = &chunk{topicPartition: to, limit: limit}
			open[to] = p
			chunks = append(chunks, p)
		}
		p.messages, p.bytes = append(p.messages, m), p.bytes+size
	}
	return chunks, nil
}

func (c *connection) partitions(topic string) (int32, error) {
	all, err := c.client.Partitions(topic)
	if errors.Is(err, sarama.ErrLeaderNotAvailable) { // of one partition; the others are known now
		all, err = c.client.Partitions(topic)
	}
	if err == nil && len(all) == 0 {
		err = sarama.ErrLeaderNotAvailable
	}
	return int32(len(all)), err
}

// brokerSender sends to one broker. While a request is under way, the next chunks wait, and are then sent together.
// It cannot be coalesce.Coalescer: a chunk that does not fit lets those of other partitions overtake it.
type brokerSender struct {
	c      *connection
	leader *sarama.Broker

	mu      sync.Mutex
	waiting []*chunk
	isBusy  bool
}

func (w *brokerSender) take(chunks []*chunk) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting = append(w.waiting, chunks...)
	if !w.isBusy {
		w.isBusy = true
		go w.run()
	}
}

// run sends until no chunk waits.
func (w *brokerSender) run() {
	for {
		batches := w.load()
		if len(batches) == 0 {
			return
		}
		w.produce(batches)
	}
}

// load takes the chunks that fit into one request, which has one batch for each partition: chunks for the same
// partition go into the same batch, or in their order into the next requests.
func (w *brokerSender) load() map[topicPartition][]*chunk {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.c.isRetired() {
		for _, p := range w.waiting {
			p.answer(errRetired)
		}
		w.waiting, w.isBusy = nil, false
		return nil
	}
	batches, closed, total := map[topicPartition][]*chunk{}, map[topicPartition]bool{}, 0
	var later []*chunk
	for _, p := range w.waiting {
		before := batches[p.topicPartition]
		if closed[p.topicPartition] || !fits(p, before) || total > 0 && total+p.bytes > requestMost {
			closed[p.topicPartition] = true // a smaller chunk of the partition must not overtake it
			later = append(later, p)
			continue
		}
		batches[p.topicPartition] = append(before, p)
		total += p.bytes
	}
	w.waiting = later
	w.isBusy = len(batches) > 0
	return batches
}

// fits reports whether a chunk may go into a batch with others.
func fits(p *chunk, others []*chunk) bool {
	bytes, limit := p.bytes, p.limit
	for _, q := range others {
		bytes, limit = bytes+q.bytes, min(limit, q.limit)
	}
	return len(others) == 0 || bytes <= limit
}

func (w *brokerSender) produce(batches map[topicPartition][]*chunk) {
	request := &sarama.ProduceRequest{
		Version: produceVersion, RequiredAcks: sarama.WaitForAll, Timeout: int32(brokerTimeout.Milliseconds()),
	}
	for at, chunks := range batches {
		request.AddBatch(at.topic, at.id, batchOf(chunks))
	}
	answer, err := w.call(request)
	verdicts := make(map[topicPartition]error, len(batches))
	for at, chunks := range batches {
		failure := err
		if failure == nil {
			failure = verdict(answer.GetBlock(at.topic, at.id), chunks)
		}
		if verdicts[at] = failure; failure != nil && !isTooLarge(failure) {
			w.c.retire()
		}
	}
	for at, chunks := range batches {
		for _, p := range chunks {
			p.answer(verdicts[at])
		}
	}
}

// call leaves the broker's lock to others while it waits for the answer, which sarama bounds.
func (w *brokerSender) call(request *sarama.ProduceRequest) (answer *sarama.ProduceResponse, err error) {
	answered := make(chan struct{})
	sent := w.leader.AsyncProduce(request, func(a *sarama.ProduceResponse, failure error) {
		answer, err = a, failure
		close(answered)
	})
	if sent == nil {
		<-answered
	} else {
		err = sent
	}
	if err != nil {
		_ = w.leader.Close() // half of a request or answer could be read as part of the next one
	}
	return answer, err
}

// verdict returns the error in a broker's answer about a batch.
func verdict(block *sarama.ProduceResponseBlock, chunks []*chunk) error {
	switch {
	case block == nil:
		return sarama.ErrIncompleteResponse
	case block.Err == sarama.ErrNoError:
		return nil
	case block.Err != sarama.ErrMessageSizeTooLarge && block.Err != sarama.ErrMessageSetSizeTooLarge:
		return block.Err
	case len(chunks) > 1 || len(chunks[0].messages) > 1:
		return errCrowded
	default:
		return sarama.ErrMessageSizeTooLarge
	}
}

// isTooLarge reports whether the broker would accept a smaller batch.
func isTooLarge(err error) bool {
	return errors.Is(err, errCrowded) || errors.Is(err, sarama.ErrMessageSizeTooLarge)
}

func batchOf(chunks []*chunk) *sarama.RecordBatch {
	now := time.Now().Truncate(time.Millisecond) // with the precision of a record's timestamp
	batch := &sarama.RecordBatch{
		Version: recordVersion, FirstTimestamp: now,
		ProducerID: -1, ProducerEpoch: -1, FirstSequence: -1, // nothing is sent again as the same batch
	}
	for _, p := range chunks {
		for _, message := range p.messages {
			at := now
			if !message.Timestamp.IsZero() { // a record that is put on its topic again
				at = message.Timestamp
			}
			if at.After(batch.MaxTimestamp) {
				batch.MaxTimestamp = at
			}
			r := &sarama.Record{
				OffsetDelta: int64(len(batch.Records)), TimestampDelta: at.Sub(now),
				Key: bytesOf(message.Key), Value: bytesOf(message.Value),
			}
			for i := range message.Headers {
				r.Headers = append(r.Headers, &message.Headers[i])
			}
			batch.Records = append(batch.Records, r)
		}
	}
	batch.LastOffsetDelta = int32(len(batch.Records) - 1)
	return batch
}
