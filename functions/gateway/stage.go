package gateway

import (
	"context"
	"sync"
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
	stageCall   = 1_000       // events in one try, so that a slow broker still gets somewhere
)

// stage says events soon after they are committed, many at once, without holding an answer back. What it
// cannot say it drops: projection's reconcile says it from the rows.
type stage struct {
	mu     sync.Mutex
	events []event.Event
	bytes  int
	lost   int           // dropped since the last try, there was no room
	filled chan struct{} // has one value when events is not empty
	broken bool          // the last try failed; run's own
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
		s.lost += len(events)
		return
	}
	s.events, s.bytes = append(s.events, events...), s.bytes+size
	select {
	case s.filled <- struct{}{}:
	default:
	}
}

func (s *stage) take() (events []event.Event, lost int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	events, lost = s.events, s.lost
	s.events, s.bytes, s.lost = nil, 0, 0
	return events, lost
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
	events, lost := s.take()
	if lost > 0 {
		telemetry.Logger(ctx).Warn("had no room to say what was accepted, reconcile will", "events", lost)
	}
	for len(events) > 0 {
		n := min(len(events), stageCall)
		err := s.try(ctx, say, events[:n])
		switch {
		case err != nil && !s.broken:
			telemetry.Logger(ctx).Warn("cannot say what was accepted, reconcile will", "error", err, "events", len(events))
		case err == nil && s.broken:
			telemetry.Logger(ctx).Info("can say what was accepted again")
		}
		if s.broken = err != nil; s.broken {
			return // more of it would only keep the next ones waiting
		}
		events = events[n:]
	}
}

func (s *stage) try(ctx context.Context, say funchost.Publish, events []event.Event) error {
	ctx, cancel := context.WithTimeout(ctx, stageTry)
	defer cancel()
	return say(ctx, events)
}
