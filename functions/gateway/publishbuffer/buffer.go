// Package publishbuffer publishes events of committed rows in the background.
//
// Why answers do not wait for Kafka: docs/decisions/api.md#the-answer-to-a-post-does-not-wait-for-kafka
package publishbuffer

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// The limits of the buffer while the broker is slow. Events beyond them are left to projection.
const (
	maxEvents = 20_000
	maxBytes  = 32 << 20    // including those that are being published
	oneTry    = time.Second // the time limit of an event's one try, and of a request that waits for room
	maxBatch  = 1_000       // events in one try, so that a slow broker still makes progress
)

// Buffer publishes events soon after their rows are committed, many at once. A request waits for the buffer only while
// events arrive faster than the broker takes them: that slows down a client that submits too fast. Events that cannot
// be published are dropped: projection's reconcile publishes them again from the rows.
type Buffer struct {
	mu     sync.Mutex
	events []jobevent.Item
	bytes  int
	trying int           // the size of the events that Run is publishing
	lost   int           // how many were dropped for lack of room since the last try
	broken bool          // the last try failed
	filled chan struct{} // has one value when events is not empty
	taken  chan struct{} // closed when there is room again

	full, publishing telemetry.Trouble
}

// New makes an empty buffer.
func New() *Buffer {
	return &Buffer{
		filled: make(chan struct{}, 1), taken: make(chan struct{}),
		full:       telemetry.Trouble{What: "buffer all events; reconcile publishes those that did not fit"},
		publishing: telemetry.Trouble{What: "publish events; reconcile publishes them later"},
	}
}

// Add hands events to Run. If there is no room, it waits for at most a second.
func (s *Buffer) Add(events []jobevent.Item) {
	if len(events) == 0 {
		return
	}
	size := 0
	for i := range events {
		size += events[i].Size()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.awaitRoom(len(events), size) {
		s.lost += len(events)
		return
	}
	s.events, s.bytes = append(s.events, events...), s.bytes+size
	select {
	case s.filled <- struct{}{}:
	default:
	}
}

// awaitRoom reports whether there is room. It waits for room unless the last try failed. The caller holds the mutex,
// and holds it again afterwards.
func (s *Buffer) awaitRoom(events, size int) bool {
	fits := func() bool { return len(s.events)+events <= maxEvents && s.bytes+s.trying+size <= maxBytes }
	patience := time.NewTimer(oneTry)
	defer patience.Stop()
	for !fits() && !s.broken {
		taken := s.taken
		s.mu.Unlock()
		select {
		case <-taken:
			s.mu.Lock()
		case <-patience.C:
			s.mu.Lock()
			return fits()
		}
	}
	return fits()
}

func (s *Buffer) take() (events []jobevent.Item, lost int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	events, lost = s.events, s.lost
	s.events, s.trying, s.bytes, s.lost = nil, s.bytes, 0, 0
	s.makeRoom()
	return events, lost
}

// makeRoom wakes the calls that wait for room. The caller holds the mutex.
func (s *Buffer) makeRoom() {
	close(s.taken)
	s.taken = make(chan struct{})
}

// forget frees the memory of a try that has ended.
func (s *Buffer) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trying = 0
	s.makeRoom()
}

// ended records the result of a try.
func (s *Buffer) ended(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = err != nil
}

var errNoRoom = errors.New("there is no room")

// Run publishes events until ctx ends, and then those that are left.
func (s *Buffer) Run(ctx context.Context, publish funchost.Publish) {
	for {
		select {
		case <-ctx.Done():
			s.publishAll(context.WithoutCancel(ctx), publish)
			return
		case <-s.filled:
			s.publishAll(context.WithoutCancel(ctx), publish)
		}
	}
}

func (s *Buffer) publishAll(ctx context.Context, publish funchost.Publish) {
	events, lost := s.take()
	defer s.forget()
	if lost > 0 {
		s.full.Note(ctx, errNoRoom, "events", lost)
	} else {
		s.full.Note(ctx, nil)
	}
	for len(events) > 0 {
		n := min(len(events), maxBatch)
		err := s.try(ctx, publish, events[:n])
		s.ended(err)
		s.publishing.Note(ctx, err, "events", len(events))
		if err != nil {
			return // more tries would only delay the events behind them
		}
		events = events[n:]
	}
}

func (s *Buffer) try(ctx context.Context, publish funchost.Publish, events []jobevent.Item) error {
	ctx, cancel := context.WithTimeout(ctx, oneTry)
	defer cancel()
	return publish(ctx, events)
}
