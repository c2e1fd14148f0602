package kafkaevent

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"github.com/jobweaver/jobweaver/shared/retry"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// maxBatchBytes bounds roughly the size of one batch: some thousands of jobs if an event has many.
const maxBatchBytes = 2 << 20

// BatchConsumer passes the records of all its partitions to one handler, one batch at a time: all records that have
// arrived, up to a maximum, in order within each partition. While one batch is finished, the next one is handled.
type BatchConsumer struct {
	// Grace is how long a handler may go on after Run's context has ended before the handler's context ends.
	Grace time.Duration

	group *GroupConsumer
	max   int

	finishing chan handled
	broken    chan error // has the error of the finish that failed

	mu       sync.Mutex
	released *sync.Cond
	inFlight map[*Partition]int // batches that hold records of it
}

// BatchHandler handles a batch. If it returns an error, the batch comes again after a while, without the records of
// partitions that were lost since. Otherwise the records are done once finish, which may be nil, has returned nil.
// finish is called while the next batch is handled, for one batch after another. Both may block for as long as they
// must. A finish that fails ends Run.
type BatchHandler func(ctx context.Context, batch []*sarama.ConsumerMessage) (finish func() error, err error)

// handled is a batch that was handled and is not finished.
type handled struct {
	batch  []Records
	finish func() error
}

// NewBatchConsumer checks the configuration; nothing connects before Run. limit is the most records
// a batch holds.
func NewBatchConsumer(cfg Config, group string, topics []string, limit int) (*BatchConsumer, error) {
	g, err := NewGroupConsumer(cfg, group, topics)
	if err != nil {
		return nil, err
	}
	b := &BatchConsumer{
		Grace: 30 * time.Second, group: g, max: limit, inFlight: map[*Partition]int{},
		finishing: make(chan handled), broken: make(chan error, 1),
	}
	b.released = sync.NewCond(&b.mu)
	return b, nil
}

// Group returns the group membership, with Joined, Partitions and their lag.
func (b *BatchConsumer) Group() *GroupConsumer { return b.group }

// Run consumes until ctx ends. Then it takes no more records, waits for the batches in flight, marks, commits and
// leaves the group. A rebalance waits for a batch in flight only if the batch has records of a revoked partition. Run
// must be called only once.
func (b *BatchConsumer) Run(ctx context.Context, handle BatchHandler) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	member, leave := context.WithCancel(context.WithoutCancel(ctx))
	defer leave()
	left := make(chan error, 1)
	go func() { left <- b.group.Run(member, Hooks{Revoked: b.waitFor}) }()

	work, cancel := graceful(ctx, b.Grace)
	defer cancel()
	var finisher sync.WaitGroup
	finisher.Go(func() { b.finishAll(stop) })
	for ctx.Err() == nil {
		if batch := b.take(); len(batch) > 0 {
			b.deliver(ctx, work, batch, handle)
			continue
		}
		select {
		case <-b.group.Ready():
		case <-ctx.Done():
		}
	}
	close(b.finishing)
	finisher.Wait()
	leave()
	err := <-left
	select {
	case broken := <-b.broken:
		return fmt.Errorf("finish batch of group %s: %w", b.group.group, broken)
	default:
		return err
	}
}

// finishAll finishes handled batches, in order. After one that failed it marks no further ones: a mark means that all
// records before it are done too.
func (b *BatchConsumer) finishAll(stop func()) {
	var failed error
	for h := range b.finishing {
		if failed == nil && h.finish != nil {
			if failed = h.finish(); failed != nil {
				b.broken <- failed
				stop()
			}
		}
		if failed == nil {
			mark(h.batch)
		}
		b.release(h.batch)
	}
}

// deliver calls the handler with the batch until it succeeds, no record of the batch belongs to this member any more,
// or ctx ends.
func (b *BatchConsumer) deliver(ctx, work context.Context, batch []Records, handle BatchHandler) {
	wait := retry.Backoff(retryAtLeast, retryAtMost)
	for {
		finish, err := handle(work, flatten(batch))
		if err == nil {
			b.finishing <- handled{batch, finish}
			return
		}
		b.release(batch)
		// Only Debug: the handler has logged what is wrong, once, not at each try.
		telemetry.Logger(ctx).DebugContext(ctx, "batch failed",
			"group", b.group.group, "records", len(flatten(batch)), "error", err)
		if !retry.Pause(ctx, wait.NextBackOff()) {
			return
		}
		if batch = b.again(batch); len(batch) == 0 {
			return
		}
	}
}

// take and again also note which batch is in flight, under the same lock, so that waitFor misses none.
func (b *BatchConsumer) take() []Records {
	b.mu.Lock()
	defer b.mu.Unlock()
	batch := b.group.Take(b.max, maxBatchBytes)
	b.note(batch)
	return batch
}

// again keeps the records of a failed batch whose partitions this member still has.
func (b *BatchConsumer) again(batch []Records) []Records {
	b.mu.Lock()
	defer b.mu.Unlock()
	batch = b.group.held(batch)
	b.note(batch)
	return batch
}

func (b *BatchConsumer) note(batch []Records) {
	for _, r := range batch {
		b.inFlight[r.Partition]++
	}
}

func (b *BatchConsumer) release(batch []Records) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range batch {
		if b.inFlight[r.Partition]--; b.inFlight[r.Partition] == 0 {
			delete(b.inFlight, r.Partition)
		}
	}
	b.released.Broadcast()
}

func (b *BatchConsumer) waitFor(p *Partition) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.inFlight[p] > 0 {
		b.released.Wait()
	}
}

func mark(batch []Records) {
	for _, r := range batch {
		r.Partition.Mark(r.Messages[len(r.Messages)-1].Offset + 1)
	}
}

func flatten(batch []Records) []*sarama.ConsumerMessage {
	if len(batch) == 1 {
		return batch[0].Messages
	}
	var all []*sarama.ConsumerMessage
	for _, r := range batch {
		all = append(all, r.Messages...)
	}
	return all
}

// graceful returns a context that ends a while after ctx.
func graceful(ctx context.Context, grace time.Duration) (context.Context, context.CancelFunc) {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		if retry.Pause(work, grace) {
			cancel()
		}
	})
	return work, func() { stop(); cancel() }
}
