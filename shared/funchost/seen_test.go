package funchost

import (
	"sync"
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/testwait"
)

// seen collects events by id, in the order of their first arrival.
type seen struct {
	mu      sync.Mutex
	changed chan struct{}
	order   []string
	events  map[string]event.Event
	times   map[string]int
}

func newSeen() *seen {
	return &seen{changed: make(chan struct{}, 1), events: map[string]event.Event{}, times: map[string]int{}}
}

func (s *seen) addItems(items ...jobevent.Item) {
	for _, it := range items {
		s.put(it.ID(), event.Event{})
	}
}

func (s *seen) add(e event.Event) { s.put(e.ID(), e) }

// put records an item with the event in which it arrived.
func (s *seen) put(id string, e event.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.times[id]++; s.times[id] == 1 {
		s.order, s.events[id] = append(s.order, id), e
	}
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

func (s *seen) get(id string) (event.Event, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.events[id], s.times[id]
}

// wait waits for n distinct events, and returns their ids in order.
func (s *seen) wait(t *testing.T, n int) []string {
	t.Helper()
	ctx := testwait.Within(t, time.Minute)
	for {
		s.mu.Lock()
		order := append([]string(nil), s.order...)
		s.mu.Unlock()
		if len(order) >= n {
			return order
		}
		select {
		case <-s.changed:
		case <-ctx.Done():
			t.Fatalf("saw %v, want %d events", order, n)
		}
	}
}
