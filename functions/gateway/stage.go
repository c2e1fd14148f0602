package gateway

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"

	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// What the stage holds while the broker is slow; beyond that, projection says it.
const (
	stageEvents = 20_000
	stageBytes  = 64 << 20
	stageTry    = time.Second // the one try of an event
)

// stage says events soon after they are committed, many at once, without holding an answer back. What it
// cannot say it drops: projection's reconcile says it from the rows.
type stage struct {
	mu     sync.Mutex
	events []event.Event
	bytes  int
	filled chan struct{} // has one value when events is not empty
	broken atomic.Bool   // the last try failed
}

func newStage() *stage { return &stage{filled: make(chan struct{}, 1)} }

// add never waits.
func (s *stage) add(events []event.Event) {
	if len(events) == 0 {
		return
	}
	size := 0
	for i := range events {
		size += len(events[i].DataEncoded)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.events)+len(events) > stageEvents || s.bytes+size > stageBytes {
		return
	}
	s.events, s.bytes = append(s.events, events...), s.bytes+size
	select {
	case s.filled <- struct{}{}:
	default:
	}
}

func (s *stage) take() []event.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	events := s.events
	s.events, s.bytes = nil, 0
	return events
}

// run says what there is, until ctx ends and the rest is said.
func (s *stage) run(ctx context.Context, say funchost.Publish) {
	for {
		select {
		case <-ctx.Done():
			s.say(context.WithoutCancel(ctx), say)
			return
		case <-s.filled:
			s.say(context.WithoutCancel(ctx), say)
		}
	}
}

func (s *stage) say(ctx context.Context, say funchost.Publish) {
	events := s.take()
	if len(events) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, stageTry)
	defer cancel()
	err := say(ctx, events)
	switch was := s.broken.Swap(err != nil); {
	case err != nil && !was:
		telemetry.Logger(ctx).Warn("cannot say what was accepted, reconcile will", "error", err, "events", len(events))
	case err == nil && was:
		telemetry.Logger(ctx).Info("can say what was accepted again")
	}
}
