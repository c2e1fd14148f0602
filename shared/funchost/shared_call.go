package funchost

import (
	"context"
	"errors"
	"sync"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// maxCalls is how many calls of Handle are under way at once for requests. Further requests wait, and share the next
// call: an event alone in a transaction takes PostgreSQL several times as long as one of many.
const maxCalls = 2

// sharedCalls are the calls of Handle for requests. Unlike coalesce's, they run in a request's own goroutine, with its
// context if it is alone.
// Why two calls: docs/decisions/events.md#requests-that-wait-share-a-call
type sharedCalls struct {
	mu       sync.Mutex
	underWay int
	waiting  []*sharer
}

// sharer is a request that waits for a call.
type sharer struct {
	items []jobevent.Item
	next  chan turn
}

// turn ends the waiting of a request: it makes the call for these requests, itself among them, or has the result.
type turn struct {
	call []*sharer
	err  error
}

// errShared is the error of a call that may be due to the items of one of several requests.
var errShared = errors.New("one of several requests failed")

// enter reports whether the request may make a call at once. If not, it waits for its turn.
func (s *sharedCalls) enter(r *sharer) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.underWay < maxCalls {
		s.underWay++
		return true
	}
	s.waiting = append(s.waiting, r)
	return false
}

// leave ends a call, and lets the first of the waiting requests make the next one.
func (s *sharedCalls) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 {
		s.underWay--
		return
	}
	n, items := 1, len(s.waiting[0].items)
	for n < len(s.waiting) && items+len(s.waiting[n].items) <= maxBatch {
		items += len(s.waiting[n].items)
		n++
	}
	call := s.waiting[:n:n]
	s.waiting = s.waiting[n:]
	call[0].next <- turn{call: call}
}

// handleShared handles the items of a request, and publishes those that follow. An error is due to these items, or to
// none.
func (h *host) handleShared(ctx context.Context, items []jobevent.Item) error {
	if len(items) == 0 {
		return nil
	}
	me := &sharer{items: items, next: make(chan turn, 1)}
	is := turn{call: []*sharer{me}}
	if !h.shared.enter(me) {
		is = <-me.next
	}
	err := is.err
	if is.call != nil {
		err = h.callFor(ctx, is.call)
	}
	if !errors.Is(err, errShared) {
		return err
	}
	events, err := h.settleOnce(ctx, items)
	h.publishSoon(ctx, events)
	return err
}

// callFor makes one call of Handle for requests, and gives all but the first one, the caller's, the result.
func (h *host) callFor(ctx context.Context, requests []*sharer) error {
	items := requests[0].items
	if len(requests) > 1 {
		ctx = h.backlog.ctx // the call goes on if the client of one of them has gone
		items = nil
		for _, r := range requests {
			items = append(items, r.items...)
		}
	}
	events, err := h.settleOnce(ctx, items)
	h.shared.leave()
	if len(requests) > 1 && isDue(err, len(items)) {
		err = errShared
	}
	h.publishSoon(ctx, events)
	for _, r := range requests[1:] {
		r.next <- turn{err: err}
	}
	return err
}
