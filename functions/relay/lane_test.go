package relay

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestALaneBeginsBehindWhatItHasTakenWhileALookIsSlow(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, c := range map[string]struct {
		ordered bool
		took    time.Duration
		want    int64
	}{
		"a quick look":                    {false, quick / 2, 0},
		"a slow look":                     {false, time.Second, 11},
		"a slow look, where order counts": {true, time.Second, 0},
	} {
		l := newLane(c.ordered)
		l.looked(0, 10, c.took)
		if got := l.from(now); got != c.want {
			t.Errorf("%s: begins at %d, want %d", name, got, c.want)
		}
		if got := l.from(now.Add(time.Minute)); got != 0 {
			t.Errorf("%s, a minute later: begins at %d", name, got)
		}
		l.looked(0, 10, c.took)
		l.again()
		if got := l.from(now); got != 0 {
			t.Errorf("%s, when rows have come back: begins at %d", name, got)
		}
	}
}

func TestALaneIsWokenToLookForRowsThatWereLate(t *testing.T) {
	t.Parallel()
	l := newLane(false)
	l.looked(0, 10, quick)
	l.foundNothing(11, quick)
	select {
	case <-l.woken:
	case <-time.After(10 * time.Second):
		t.Error("it is not woken when it may look from the first row on")
	}
}

func TestALaneThatCannotGetOnWithARowLooksBehindIt(t *testing.T) {
	t.Parallel()
	for ordered, want := range map[bool]int64{false: 8, true: 0} {
		l := newLane(ordered)
		l.looked(0, 7, 0)
		l.skip(7)
		if got := l.from(time.Now()); got != want {
			t.Errorf("ordered %t: begins at %d, want %d", ordered, got, want)
		}
	}
}

func TestAnIdleLaneIsWokenOnlyIfALookFindsRows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLane(false)
		ctx, cancel := context.WithCancel(t.Context())
		looks, found := make(chan struct{}), make(chan bool)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			l.tick(ctx, func(context.Context, *lane) bool {
				looks <- struct{}{}
				return <-found
			})
		}()
		woken := func() (n int) {
			for {
				select {
				case <-l.woken:
					n++
				case <-looks:
					return n
				}
			}
		}
		if n := woken(); n < 5 {
			t.Errorf("woken %d times before it is idle", n)
		}
		found <- false
		if n := woken(); n > 0 {
			t.Errorf("woken %d times although a look found nothing", n)
		}
		found <- true
		if n := woken(); n != 1 {
			t.Errorf("woken %d times after a look found rows", n)
		}
		cancel()
		found <- false
		<-ended
	})
}
