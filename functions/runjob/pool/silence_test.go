package pool

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/workerdb"
)

func TestAClaimOfAnEarlierEpochIsRefused(t *testing.T) {
	t.Parallel()
	p := New(1, 1, time.Hour, func(Finished) {}, func(int) {})
	claimed := []*Attempt{{Run: jobevent.Run{JobID: uuid.New(), Attempt: 1}}}
	if p.Add(claimed, p.Epoch()) {
		t.Fatal("taken before the first heartbeat")
	}
	if !p.Answered(p.Now(), 0) || p.Answered(p.Now(), 0) {
		t.Fatal("want the first heartbeat to ask for another one, which opens the pool")
	}
	before := p.Epoch()
	p.mu.Lock()
	p.lastHeartbeat.At = time.Now().Add(-2 * time.Hour)
	p.mu.Unlock()
	if p.Add(claimed, before) {
		t.Fatal("taken in silence")
	}
	p.Answered(p.Now(), 0)
	p.Answered(p.Now(), 0)
	if p.Add(claimed, before) {
		t.Fatal("taken although its row may have been settled")
	}
	if !p.Add(claimed, p.Epoch()) || !p.Known([]workerdb.Key{claimed[0].Key()})[0] {
		t.Fatal("not taken in the new epoch")
	}
}

// The monotonic clock does not run while a machine is suspended.
func TestNoAttemptStartsAfterTheMachineWasSuspended(t *testing.T) {
	t.Parallel()
	for name, stands := range map[string]func(*Pool, time.Duration){
		"suspended": func(p *Pool, d time.Duration) {
			woken := sinceBoot() + d
			p.clock.sinceBoot = func() time.Duration { return woken }
		},
		"its wall clock put forward": func(p *Pool, d time.Duration) { p.lastHeartbeat.At = p.lastHeartbeat.At.Round(0).Add(-d) },
	} {
		p := New(1, 1, 10*time.Second, func(Finished) {}, func(int) {})
		p.Answered(p.Now(), 0)
		p.Answered(p.Now(), 0)
		held := &Attempt{Run: jobevent.Run{JobID: uuid.New(), Attempt: 1}}
		if !p.Add([]*Attempt{held}, p.Epoch()) || !p.ready(time.Now()) {
			t.Fatalf("%s: a held attempt may not start", name)
		}
		stands(p, 5*time.Second)
		if !p.ready(time.Now()) {
			t.Errorf("%s: five seconds are a silence", name)
		}
		stands(p, 10*time.Second)
		if p.ready(time.Now()) || p.Room() != 0 {
			t.Errorf("%s: a held attempt starts, or there is room", name)
		}
		if !p.Answered(p.Now(), 0) || p.Answered(p.Now(), 0) || !p.ready(time.Now()) {
			t.Errorf("%s: two heartbeats do not end the silence", name)
		}
	}
}

func TestAGapThatOnlyTheDatabaseSawCountsAsASilence(t *testing.T) {
	t.Parallel()
	p := New(1, 1, 10*time.Second, func(Finished) {}, func(int) {})
	p.Answered(p.Now(), 0)
	p.Answered(p.Now(), 0)
	before := p.Epoch()
	if p.Answered(p.Now(), 4*time.Second) || p.Epoch() != before {
		t.Error("four seconds are a silence")
	}
	if !p.Answered(p.Now(), 5*time.Second) || p.Epoch() == before {
		t.Error("after half a silence claims from before it still count")
	}
}

func TestAPoolIsFreshForHalfASilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(1, 1, 10*time.Second, func(Finished) {}, func(int) {})
		if p.Fresh() {
			t.Error("fresh before the first heartbeat")
		}
		if p.Answered(p.Now(), 0); p.Fresh() {
			t.Error("fresh after the first heartbeat, of which nothing is known yet")
		}
		if p.Answered(p.Now(), 0); !p.Fresh() {
			t.Error("not fresh after the second heartbeat")
		}
		<-time.After(5*time.Second - 1)
		if !p.Fresh() {
			t.Error("not fresh before half a silence")
		}
		<-time.After(1)
		if p.Fresh() {
			t.Error("fresh after half a silence")
		}
		if p.Answered(p.Now(), 0); !p.Fresh() {
			t.Error("not fresh after another heartbeat")
		}
	})
}
