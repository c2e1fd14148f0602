// Package publishbuffer publishes events of committed rows in the background.
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

// What the buffer holds while the broker is slow. Projection publishes what goes beyond.
const (
	maxEvents = 20_000
	maxBytes  = 32 << 20    // those that are being published among them
	oneTry    = time.Second // the one try of an event, and the longest that an answer waits for room
	maxBatch  = 1_000       // events in one try, so that a slow broker still gets somewhere
)

// Buffer publishes events soon after their rows are committed, many at once. An answer waits for it only while the
// broker takes events more slowly than they come: a client that submits faster than the broker takes is slowed down.
// Events that cannot be published are dropped: projection's reconcile publishes them again from the rows.
type Buffer struct {
	mu     sync.Mutex
	events []jobevent.Item
	bytes  int
	trying int           // bytes of those that run is trying to say
	lost   int           // dropped since the last try, there was no room
	broken bool          // the last try failed
	filled chan struct{} // has one value when events is not empty
	taken  chan struct{} // closed when there is room again

	full, publishing telemetry.Trouble
}

// New makes an empty buffer.
func New() *Buffer {
	return &Buffer{
		filled: make(chan struct{}, 1), taken: make(chan struct{}),
		full:       telemetry.Trouble{What: "keep what was accepted until it is published; reconcile publishes the rest"},
		publishing: telemetry.Trouble{What: "publish what was accepted; reconcile publishes the rest"},
	}
}

// Add hands events to Run. It waits for room, for a second at most.
func (s *Buffer) Add(events []jobevent.Item) {
	if len(events) == 0 {
		return
	}
	size := 0
	for i := range events {
		size += len(events[i].Data())
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

// awaitRoom reports whether there is room. It waits for it unless the broker takes nothing. The caller holds
// the mutex, and holds it again.
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

// forget ends a try: its events need no memory any more.
func (s *Buffer) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trying = 0
	s.makeRoom()
}

// ended notes how a try went.
func (s *Buffer) ended(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = err != nil
}

var errNoRoom = errors.New("there is no room")

// Run publishes what there is, until ctx ends and the rest is published.
func (s *Buffer) Run(ctx context.Context, say funchost.Publish) {
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

func (s *Buffer) say(ctx context.Context, say funchost.Publish) {
	events, lost := s.take()
	defer s.forget()
	if lost > 0 {
		s.full.Note(ctx, errNoRoom, "events", lost)
	} else {
		s.full.Note(ctx, nil)
	}
	for len(events) > 0 {
		n := min(len(events), maxBatch)
		err := s.try(ctx, say, events[:n])
		s.ended(err)
		s.publishing.Note(ctx, err, "events", len(events))
		if err != nil {
			return // more of it would only keep the next ones waiting
		}
		events = events[n:]
	}
}

func (s *Buffer) try(ctx context.Context, say funchost.Publish, events []jobevent.Item) error {
	ctx, cancel := context.WithTimeout(ctx, oneTry)
	defer cancel()
	return say(ctx, events)
}
