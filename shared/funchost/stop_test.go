package funchost

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// A queue-proxy that has not drained, or a client that knows the address, also sends requests after the stop.
func TestRequestsAfterTheStopAreServed(t *testing.T) {
	t.Parallel()
	const delay = 200 * time.Millisecond
	inside, release := make(chan struct{}), make(chan struct{})
	var handled atomic.Int64
	s := newSite(t, Config{ShutdownDelay: delay}, Function{
		Handle: func(_ context.Context, batch []jobevent.Item) ([]jobevent.Item, error) {
			if batch[0].ID() == "long" {
				close(inside)
				<-release
			}
			handled.Add(1)
			return nil, nil
		},
	})
	long := make(chan answered, 1)
	go func() { long <- s.do("POST", "/", "{}", binary("long")...) }()
	await(t, "the long one is under way", inside)
	stopped := make(chan error, 1)
	go func() { stopped <- s.stop() }()
	s.untilReadiness(http.StatusServiceUnavailable)
	last := time.Now()
	for came := 0; came < 20 || time.Since(last) < 2*delay; came++ { // for longer than without requests
		if got := s.do("POST", "/", "{}", binary("late")...); got.status != http.StatusAccepted {
			t.Fatalf("who came %s after the stop was answered %+v", time.Since(last), got)
		}
	}
	close(release)
	if got := await(t, "the answer to the long one", long); got.status != http.StatusAccepted {
		t.Errorf("answered %+v", got)
	}
	if err := await(t, "the stop", stopped); err != nil {
		t.Error(err)
	}
	if handled.Load() < 21 {
		t.Errorf("%d were handled", handled.Load())
	}
}
