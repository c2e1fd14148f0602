package pool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/runjob/handlers"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/workerdb"
)

func TestAFastPoolHoldsMoreAttempts(t *testing.T) {
	t.Parallel()
	p := New(12, 100, time.Hour, func(Finished) {}, func(int) {})
	p.Answered(p.Now(), 0)
	p.Answered(p.Now(), 0)
	hold := func(n, bytes int) {
		var batch []*Attempt
		for range n {
			batch = append(batch, &Attempt{Run: jobevent.Run{JobID: uuid.New(), Attempt: 1, Payload: make([]byte, bytes)}})
		}
		p.Add(batch, p.Epoch())
	}
	if got := p.Room(); got != 112 {
		t.Errorf("idle: room for %d, want the slots and the places", got)
	}
	now := time.Now()
	for range 5000 {
		p.meter.start(now)
		p.meter.finish(now, now.Add(20*time.Millisecond)) // 600 a second on 12 slots
	}
	p.Heartbeat(now)
	if got := p.Room(); got != 172 {
		t.Errorf("attempts of 20 ms: room for %d, want what 100 ms get through beyond the places", got)
	}
	hold(80, 0)
	if got := p.Room(); got != 92 {
		t.Errorf("half of it held: room for %d", got)
	}
	hold(1, maxAheadBytes)
	if got := p.Room(); got != 0 {
		t.Errorf("large payloads held: room for %d, want none beyond the places", got)
	}
	quick := New(12, 100, time.Hour, func(Finished) {}, func(int) {})
	quick.Answered(quick.Now(), 0)
	quick.Answered(quick.Now(), 0)
	for range 5000 {
		quick.meter.start(now)
		quick.meter.finish(now, now)
	}
	quick.Heartbeat(now)
	if got := quick.Room(); got != 112+maxAhead {
		t.Errorf("no-ops: room for %d, want %d", got, 112+maxAhead)
	}
	quick.Heartbeat(now.Add(time.Second))
	quick.Heartbeat(now.Add(10 * time.Second))
	if got := quick.Room(); got != 112 {
		t.Errorf("idle since: room for %d", got)
	}
}

func TestAnAttemptDoesNotWaitBehindThoseOfOtherFairnessKeys(t *testing.T) {
	t.Parallel()
	p := New(1, 100, time.Hour, func(Finished) {}, func(int) {})
	p.Answered(p.Now(), 0)
	p.Answered(p.Now(), 0)
	begin := time.Now()
	hold := func(owner, key string, rank int) {
		p.Add([]*Attempt{{Run: jobevent.Run{
			JobID: uuid.New(), Attempt: 1, OwnerID: owner, FairnessKey: key, Rank: begin.Add(time.Duration(rank) * time.Second),
		}}}, p.Epoch())
	}
	hold("quiet", "", 1000)
	hold("quiet", "", 999)
	hold("", "key", 1001)
	var a *Attempt
	var order []string
	for i := range 8 {
		hold("noisy", "", i) // they have waited longer, and come as slots become free
		a, _ = p.Next(t.Context(), 0, a, workerdb.Outcome{})
		order = append(order, fmt.Sprint(a.Run.OwnerID, a.Run.FairnessKey, a.Run.Rank.Sub(begin).Seconds()))
	}
	want := []string{"quiet999", "key1001", "noisy0", "quiet1000", "noisy1", "noisy2", "noisy3", "noisy4"}
	if !slices.Equal(order, want) {
		t.Errorf("they started as %v, want %v", order, want)
	}
}

func TestOneTimerEndsOverdueAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		after := map[int64]time.Duration{} // by timeout
		began := time.Now()
		p := New(3, 100, time.Hour, func(f Finished) {
			mu.Lock()
			defer mu.Unlock()
			after[f.Attempt.Run.TimeoutMs] = time.Since(began)
		}, func(int) {})
		p.Answered(p.Now(), 0)
		p.Answered(p.Now(), 0)
		var causes []error
		var slots sync.WaitGroup
		for slot := range 3 {
			slots.Go(func() {
				var last *Attempt
				for {
					a, ctx := p.Next(t.Context(), slot, last, workerdb.Outcome{FinishedAt: time.Now()})
					if last = a; a == nil {
						return
					}
					<-ctx.Done()
					mu.Lock()
					causes = append(causes, context.Cause(ctx))
					mu.Unlock()
				}
			})
		}
		for i, timeout := range []int64{5000, 300, 40, 700} { // the last waits for a slot
			p.Add([]*Attempt{{Run: jobevent.Run{
				JobID: uuid.New(), Attempt: 1, Spec: jobevent.Spec{TimeoutMs: timeout}, Rank: time.Unix(int64(i), 0),
			}}}, p.Epoch())
		}
		<-time.After(time.Minute)
		p.Stop()
		slots.Wait()
		for timeout, want := range map[int64]time.Duration{5000: 5 * time.Second, 300: 300 * time.Millisecond,
			40: 40 * time.Millisecond, 700: 740 * time.Millisecond} {
			if got := after[timeout]; got < want || got > want+5*time.Millisecond {
				t.Errorf("timeout of %d ms: ended after %v, want %v", timeout, got, want)
			}
		}
		for _, cause := range causes {
			if !errors.Is(cause, handlers.ErrTimeout) {
				t.Errorf("ended for %v", cause)
			}
		}
	})
}

func TestHeartbeatsRepeatTheProgressOfAWaitingAttemptForAWhile(t *testing.T) {
	t.Parallel()
	p := New(1, 0, time.Second, nil, func(int) {})
	now := time.Now()
	a := &Attempt{Run: jobevent.Run{JobID: uuid.New(), Attempt: 1}}
	p.Leave(a, now) // has reported none
	a.Progress.Store(&jobevent.Progress{Percent: 70})
	p.Leave(a, now)
	if n := len(p.Heartbeat(now.Add(leftFor)).Left); n != 1 {
		t.Errorf("%d are in the heartbeat", n)
	}
	if n := len(p.Heartbeat(now.Add(leftFor + 1)).Left); n != 0 {
		t.Errorf("%d are in the heartbeat later", n)
	}
}
