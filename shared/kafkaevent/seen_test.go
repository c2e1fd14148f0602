package kafkaevent

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/IBM/sarama"
)

// seen records the events that consumers received: how often, and in which order for each topic and key.
type seen struct {
	mu      sync.Mutex
	changed chan struct{}
	times   map[string]int
	order   map[string][]int
	largest int // batch
	total   int
}

func newSeen() *seen {
	return &seen{changed: make(chan struct{}, 1), times: map[string]int{}, order: map[string][]int{}}
}

// handle takes a batch and leaves nothing to finish.
func (s *seen) handle(_ context.Context, batch []*sarama.ConsumerMessage) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.largest = max(s.largest, len(batch))
	for _, m := range batch {
		e, err := Decode(m)
		if err != nil {
			return err
		}
		n, err := strconv.Atoi(e.ID())
		if err != nil {
			return err
		}
		s.times[e.ID()]++
		s.total++
		place := m.Topic + " " + string(m.Key)
		s.order[place] = append(s.order[place], n)
	}
	signal(s.changed)
	return nil
}

// wait returns once n distinct events have been seen.
func (s *seen) wait(ctx context.Context, t *testing.T, distinct int) {
	t.Helper()
	for {
		s.mu.Lock()
		n := len(s.times)
		s.mu.Unlock()
		if n >= distinct {
			return
		}
		select {
		case <-s.changed:
		case <-ctx.Done():
			t.Fatalf("saw %d of %d events before the deadline", n, distinct)
		}
	}
}

func (s *seen) duplicates() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total - len(s.times)
}

// inOrder reports whether each key's events were first seen in the order in which they were published.
func (s *seen) inOrder() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, numbers := range s.order {
		highest := -1
		known := map[int]bool{}
		for _, n := range numbers {
			if !known[n] && n < highest {
				return fmt.Errorf("%s: %d first seen after %d", key, n, highest)
			}
			known[n] = true
			highest = max(highest, n)
		}
	}
	return nil
}

// member is a running BatchConsumer.
type member struct {
	*BatchConsumer
	stop     func() // ends it and waits
	stopping func() bool
}

// whole is a BatchHandler that leaves nothing to finish.
func whole(handle func(context.Context, []*sarama.ConsumerMessage) error) BatchHandler {
	return func(ctx context.Context, batch []*sarama.ConsumerMessage) (func() error, error) {
		return nil, handle(ctx, batch)
	}
}

func (p *place) member(
	limit int, handle func(context.Context, []*sarama.ConsumerMessage) error, topics ...string,
) *member {
	p.t.Helper()
	return p.finishing(limit, whole(handle), topics...)
}

func (p *place) finishing(limit int, handle BatchHandler, topics ...string) *member {
	p.t.Helper()
	b, err := NewBatchConsumer(p.cfg, p.group, append(topics, p.topic), limit)
	if err != nil {
		p.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx, handle) }()
	var stopped atomic.Bool // true when the stop has cancelled ctx, with which Run's own contexts end too
	stop := sync.OnceFunc(func() {
		cancel()
		stopped.Store(true)
		if err := <-done; err != nil {
			p.t.Errorf("run consumer: %v", err)
		}
	})
	p.t.Cleanup(stop)
	return &member{BatchConsumer: b, stop: stop, stopping: stopped.Load}
}

// holds reports whether the member has n partitions.
func (m *member) holds(n int) func() bool {
	return func() bool { return len(m.Group().Partitions()) == n }
}

// fetched returns how many records were fetched and not taken.
func (c *GroupConsumer) fetched() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, p := range c.parts {
		n += len(p.pending)
	}
	return n
}
