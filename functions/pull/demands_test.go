package pull

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/pullwire"
	"github.com/jobweaver/jobweaver/shared/testwait"
)

// hold opens a claim that no attempt comes for.
func (i *instance) hold(caller pullwire.Caller, worker string, slots int, types ...string) *openClaim {
	i.x.t.Helper()
	c := i.open(pullwire.Claim{Caller: caller, WorkClaim: apibody.WorkClaim{
		Worker: worker, Types: types, Slots: slots, Wait: patience,
	}})
	if c == nil {
		i.x.t.Fatal("the claim is refused")
	}
	i.x.t.Cleanup(func() { i.close(c) })
	return c
}

func TestAHeartbeatListsWhatPullWorkersAskFor(t *testing.T) {
	x := newFixture(t)
	i := x.start(nil)
	i.hold(everyone, "a", 3, "T", "S")
	i.hold(everyone, "b", 2, "S", "T")
	i.hold(pullwire.Caller{Owner: "acme"}, "a", 4, "T")
	want := []jobevent.Demand{
		{Everyone: true, JobTypes: []string{"S", "T"}, Slots: 5},
		{OwnerID: "acme", JobTypes: []string{"T"}, Slots: 4},
	}
	x.until("a heartbeat lists them", func(e jobevent.Item) bool {
		heartbeat, err := jobevent.DecodeAs[jobevent.Heartbeat](e, jobevent.TypeHeartbeat)
		return err == nil && heartbeat.Slots == 9 && slices.EqualFunc(heartbeat.Demands, want, func(a, b jobevent.Demand) bool {
			return a.Everyone == b.Everyone && a.OwnerID == b.OwnerID && a.Slots == b.Slots && slices.Equal(a.JobTypes, b.JobTypes)
		})
	})
}

func TestAttemptsForWhichNoPullWorkerAsksGoBackToTheScheduler(t *testing.T) {
	x := newFixture(t)
	x.start(nil)
	run := x.run("GONE", "acme", nil)
	kind, failed := x.outcome(run)
	if kind != string(jobevent.KindSnoozed) || !strings.Contains(failed.Message, "no pull worker") {
		t.Errorf("it is %s, %+v", kind, failed)
	}
}

func TestACancelledAttemptLeavesMemoryAlthoughNoPullWorkerAsksForIt(t *testing.T) {
	x := newFixture(t)
	i := x.start(nil)
	run := x.run("T", "acme", nil)
	testwait.Until(t, "it is read", func() bool { return i.worker.Unclaimed()[x.queue] == 1 })
	x.cancel(run)
	testwait.Until(t, "it has left", func() bool { return i.worker.Unclaimed()[x.queue] == 0 })
	if kind, _ := x.outcome(run); kind != string(jobevent.KindCancelled) {
		t.Errorf("it is %s", kind)
	}
}

func TestAnAttemptThatAnotherWorkerHasLeavesMemory(t *testing.T) {
	x := newFixture(t)
	i := x.start(nil)
	c := i.hold(everyone, "busy", 1, "T")
	x.run("T", "", nil)
	testwait.Until(t, "it is claimed", func() bool { got, _ := i.filled(c); return got == 1 })
	second := x.run("T", "", nil)
	testwait.Until(t, "the next one is read", func() bool { return i.worker.Unclaimed()[x.queue] == 1 })
	x.claimElsewhere(second)
	testwait.Until(t, "it has left", func() bool { return i.worker.Unclaimed()[x.queue] == 0 })
}

// The timer of the pool may be late.
func TestAResultAfterTheDeadlineIsRefused(t *testing.T) {
	x := newFixture(t)
	i := x.start(nil)
	x.run("LATE", "", nil)
	one := i.one("LATE")
	i.mu.Lock()
	i.tokens[one.Token].deadline = time.Now()
	i.mu.Unlock()
	i.wantSettled(409, apibody.WorkResult{Token: one.Token, Status: apibody.WorkCompleted})
}

// The timeout counts from the handing out: a claim whose answer breaks off costs a job nothing of it.
func TestTheTimeoutBeginsWhenTheAttemptIsHandedOut(t *testing.T) {
	x := newFixture(t)
	i := x.start(func(_ *Config, times *timing) { times.unasked = patience })
	run := x.run("T", "", func(run *jobevent.Run) { run.TimeoutMs = 400 })
	got := i.got("T")
	<-time.After(time.Second) // longer than the timeout
	if got[0].hasEnded() {
		t.Fatal("it timed out before it was handed out")
	}
	handed := i.hand(got, "i")
	if len(handed.Attempts) != 1 || time.Until(handed.Attempts[0].Deadline) > 400*time.Millisecond {
		t.Fatalf("handed out %+v", handed)
	}
	kind, failed := x.outcome(run)
	if kind != "failed" || failed.ErrorCode != "WORKER.TIMEOUT" || failed.StartedAt == nil {
		t.Errorf("it is %s, %+v", kind, failed)
	}
}

func TestAnAttemptExpiresUntilItIsHandedOut(t *testing.T) {
	x := newFixture(t)
	i := x.start(func(_ *Config, times *timing) { times.unasked = patience })
	soon := time.Now().Add(2 * time.Second)
	run := x.run("T", "", func(run *jobevent.Run) { run.ExpiresAt = &soon })
	got := i.got("T")
	if kind, failed := x.outcome(run); kind != string(jobevent.KindCancelled) || failed.ErrorCode != "WORKER.EXPIRED" && !strings.Contains(failed.ErrorCode, "EXPIRED") {
		t.Errorf("it is %s, %+v", kind, failed)
	}
	if handed := i.hand(got, "i"); len(handed.Attempts) > 0 {
		t.Error("it is handed out after it has expired")
	}
}

// A client that breaks off its claims again and again keeps no attempt: the time until it is given back runs on.
func TestAClientThatBreaksOffItsClaimsKeepsNoAttempt(t *testing.T) {
	x := newFixture(t)
	i := x.start(func(_ *Config, times *timing) { times.unasked = 500 * time.Millisecond })
	run := x.run("T", "", nil)
	over := make(chan struct{})
	go func() {
		defer close(over)
		x.outcome(run)
	}()
	for {
		select {
		case <-over:
			if kind, _ := x.outcome(run); kind != string(jobevent.KindInterrupted) {
				t.Errorf("it is %s", kind)
			}
			return
		default:
		}
		c := i.open(pullwire.Claim{Caller: everyone, WorkClaim: apibody.WorkClaim{
			Worker: "breaks off", Types: []string{"T"}, Slots: 1, Wait: 100 * time.Millisecond,
		}})
		i.waitFor(t.Context(), c)
		i.takeBack(i.close(c))
	}
}

func TestOneOwnerCannotAskForEverythingThatFitsIntoAHeartbeat(t *testing.T) {
	x := newFixture(t)
	i := x.start(nil)
	types := make([]string, 100)
	refused := 0
	for n := range 100 {
		for j := range types {
			types[j] = fmt.Sprintf("T%d_%d", n, j)
		}
		var none pullwire.Attempts
		claim := pullwire.Claim{Caller: pullwire.Caller{Owner: "greedy"}, WorkClaim: apibody.WorkClaim{
			Worker: fmt.Sprint("w", n), Types: types, Slots: 1,
		}}
		if i.post(pullwire.ClaimPath, claim, &none) == http.StatusTooManyRequests {
			refused++
		}
	}
	if refused == 0 || refused == 100 {
		t.Errorf("%d of 100 claims are refused", refused)
	}
	if i.open(pullwire.Claim{Caller: everyone, WorkClaim: apibody.WorkClaim{Worker: "w", Types: []string{"T"}, Slots: 1}}) == nil {
		t.Error("another owner's claim is refused")
	}
}

// No owner gets more than it asks for, no slot is left while an owner lacks one, and an owner that asks for less than an
// equal part gets all of it.
func TestSlotsAreDividedFairly(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		slots := rapid.IntRange(0, 50).Draw(rt, "slots")
		wants := rapid.MapOf(rapid.StringN(1, 3, -1), rapid.IntRange(0, 30)).Draw(rt, "wants")
		granted, sum, all := fairly(slots, wants), 0, 0
		for who, n := range granted {
			if n > wants[who] || n < 0 {
				rt.Fatalf("%q wants %d and gets %d", who, wants[who], n)
			}
			if n < wants[who] && n < slots/len(wants) {
				rt.Fatalf("%q wants %d and gets %d, less than an equal part of %d", who, wants[who], n, slots)
			}
			sum, all = sum+n, all+wants[who]
		}
		if sum != min(slots, all) {
			rt.Fatalf("%d of %d slots are divided", sum, slots)
		}
	})
}

// The watchdog orders an attempt again that runs here. No claim waits for it.
func TestAnAttemptThatRunsAlreadyHoldsUpNoClaim(t *testing.T) {
	x := newFixture(t)
	i := x.start(nil)
	run := x.run("T", "", nil)
	first := i.one("T")
	got := make(chan []pullwire.Attempt, 1)
	go func() { got <- i.claim(everyone, "w2", "T", 1, 2*time.Second) }()
	i.waitUntilOpen("T")
	x.order(run)
	select {
	case got := <-got:
		if len(got) > 0 {
			t.Errorf("it was handed out again: %+v", got)
		}
	case <-time.After(20 * time.Second):
		t.Error("the claim has no answer 18 s after its wait")
	}
	next := x.run("T", "", nil)
	if a := i.one("T"); a.JobID != next.JobID.String() {
		t.Errorf("handed out %+v", a)
	}
	i.wantSettled(http.StatusOK, apibody.WorkResult{Token: first.Token, Status: apibody.WorkCompleted})
}
