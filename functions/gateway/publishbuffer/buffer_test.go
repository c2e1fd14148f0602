package publishbuffer

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

func TestClientsFasterThanTheBrokerAreSlowedDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		s, published, slow := New(), atomic.Int64{}, make(chan struct{})
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			s.Run(ctx, func(_ context.Context, events []jobevent.Item) error {
				<-slow
				published.Add(int64(len(events)))
				return nil
			})
		}()
		const all = 3 * maxEvents
		go func() {
			for range all / 500 {
				s.Add(make([]jobevent.Item, 500))
			}
			stop()
		}()
		synctest.Wait()
		if ctx.Err() != nil {
			t.Error("everything was taken in while the broker took nothing")
		}
		close(slow)
		<-ended
		if n := published.Load(); n != all {
			t.Errorf("%d of %d events published", n, all)
		}
	})
}

func TestNoRequestWaitsForABrokerThatIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		s, ended := New(), make(chan struct{})
		go func() {
			defer close(ended)
			s.Run(ctx, func(context.Context, []jobevent.Item) error { return errors.New("away") })
		}()
		s.Add(make([]jobevent.Item, 1))
		synctest.Wait() // the first try has failed
		s.mu.Lock()
		s.events = make([]jobevent.Item, maxEvents)
		s.mu.Unlock()
		began := time.Now()
		s.Add(make([]jobevent.Item, 1))
		if waited := time.Since(began); waited != 0 {
			t.Errorf("waited for %s", waited)
		}
		if s.mu.Lock(); s.lost != 1 {
			t.Errorf("%d events dropped, want 1", s.lost)
		}
		s.mu.Unlock()
		stop()
		<-ended
	})
}

func TestStuckBrokerDelaysARequestOnlyBriefly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := New() // without Run, as if its one try never ended
		s.Add(make([]jobevent.Item, maxEvents))
		began := time.Now()
		s.Add(make([]jobevent.Item, 1))
		if waited := time.Since(began); waited != oneTry {
			t.Errorf("waited for %s, want %s", waited, oneTry)
		}
		if s.lost != 1 {
			t.Errorf("%d events dropped, want 1", s.lost)
		}
	})
}
