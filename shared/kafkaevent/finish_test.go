package kafkaevent

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/jobweaver/jobweaver/shared/testwait"
)

// records publishes records of one partition, and returns their places.
func (p *place) records(n int) {
	p.t.Helper()
	publish(p.t, p.producer(), p.events(0, n, 1))
}

func TestTheNextBatchIsHandledWhileOneIsFinished(t *testing.T) {
	t.Parallel()
	ctx := testwait.Within(t, time.Minute)
	p := newPlace(t)
	p.records(30)
	var calls, finished atomic.Int64
	second, finish := make(chan struct{}), make(chan struct{})
	p.finishing(10, func(context.Context, []*sarama.ConsumerMessage) (func() error, error) {
		n := calls.Add(1)
		if n == 2 {
			close(second)
		}
		return func() error {
			if n == 1 {
				<-finish
			}
			if !finished.CompareAndSwap(n-1, n) {
				t.Errorf("batch %d was finished when %d were", n, finished.Load())
			}
			return nil
		}, nil
	})
	<-second // the first is not finished
	if n := p.committed(); n > 0 {
		t.Errorf("%d records committed before their batch was finished", n)
	}
	if n := calls.Load(); n > 2 {
		t.Errorf("%d batches in flight, want at most one handled beside one being finished", n)
	}
	close(finish)
	until(ctx, t, "all is committed", func() bool { return p.committed() == 30 })
}

func TestStopWaitsForWhatIsBeingFinished(t *testing.T) {
	t.Parallel()
	ctx := testwait.Within(t, time.Minute)
	p := newPlace(t)
	p.records(10)
	entered, finish := make(chan struct{}, 1), make(chan struct{})
	var handled atomic.Int64 // they may come in more than one batch
	m := p.finishing(10, func(_ context.Context, batch []*sarama.ConsumerMessage) (func() error, error) {
		handled.Add(int64(len(batch)))
		return func() error {
			signal(entered)
			<-finish
			return nil
		}, nil
	})
	<-entered
	stopped := make(chan struct{})
	go func() { m.stop(); close(stopped) }()
	until(ctx, t, "stopping", m.stopping)
	close(finish)
	<-stopped
	if n := p.committed(); n == 0 || n != handled.Load() {
		t.Errorf("%d of %d handled records committed", n, handled.Load())
	}
}

func TestARebalanceWaitsForWhatIsBeingFinished(t *testing.T) {
	t.Parallel()
	ctx := testwait.Within(t, 2*time.Minute)
	p := newPlace(t)
	publish(t, p.producer(), p.events(0, 100, 50)) // of all partitions
	got := newSeen()
	entered, finish := make(chan struct{}, 1), make(chan struct{})
	first := p.finishing(100, func(ctx context.Context, batch []*sarama.ConsumerMessage) (func() error, error) {
		return func() error {
			signal(entered)
			<-finish
			return nil
		}, got.handle(ctx, batch)
	})
	until(ctx, t, "the first holds all", first.holds(12))
	<-entered
	second := p.member(100, got.handle)
	until(ctx, t, "the second has joined", second.Group().Joined)
	close(finish)
	until(ctx, t, "the second holds its share", second.holds(6))
	got.wait(ctx, t, 100)
	if d := got.duplicates(); d != 0 {
		t.Errorf("%d events came twice", d)
	}
}

func TestAfterAFinishThatFailsNothingIsCommitted(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.records(30)
	c, err := NewBatchConsumer(p.cfg, p.group, []string{p.topic}, 10)
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	second := make(chan struct{})
	var calls atomic.Int64
	err = c.Run(testwait.Within(t, time.Minute), func(context.Context, []*sarama.ConsumerMessage) (func() error, error) {
		switch calls.Add(1) {
		case 1:
			return func() error { <-second; return broken }, nil
		case 2:
			close(second)
		}
		return func() error { return nil }, nil
	})
	if !errors.Is(err, broken) {
		t.Errorf("ended with %v", err)
	}
	if n := p.committed(); n != 0 {
		t.Errorf("%d records committed behind a batch that was not finished", n)
	}
}
