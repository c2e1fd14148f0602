package pull

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/pgtest"
	"github.com/jobweaver/jobweaver/shared/pullwire"
	"github.com/jobweaver/jobweaver/shared/testwait"
	"github.com/jobweaver/jobweaver/shared/workerdb"
	"github.com/jobweaver/jobweaver/shared/workerdb/workerdbtest"
)

// startStale starts an instance that counts as fresh when the switch is on.
func (x *fixture) startStale(change func(*Config, *timing)) (*instance, *atomic.Bool) {
	x.t.Helper()
	var fresh atomic.Bool
	x.fresh = fresh.Load
	return x.start(change), &fresh
}

// got opens a claim and waits until it has an attempt, which is not handed out yet.
func (i *instance) got(jobType string) []*inHand {
	i.x.t.Helper()
	c := i.open(pullwire.Claim{Caller: everyone, WorkClaim: apibody.WorkClaim{
		Worker: "w", Types: []string{jobType}, Slots: 1, Wait: patience,
	}})
	i.waitFor(i.x.t.Context(), c)
	got := i.close(c)
	if len(got) != 1 {
		i.x.t.Fatalf("the claim has %d attempts", len(got))
	}
	return got
}

// waitUntilOpen waits until a claim of attempts of a type is open.
func (i *instance) waitUntilOpen(jobType string) {
	i.x.t.Helper()
	testwait.Until(i.x.t, "an open claim", func() bool {
		i.mu.Lock()
		defer i.mu.Unlock()
		return i.claims[jobType] != nil
	})
}

func TestNothingIsClaimedNorHandedOutWhilePullIsNotFresh(t *testing.T) {
	x := newFixture(t)
	i, fresh := x.startStale(nil)
	run := x.run("T", "", nil)
	if got := i.claim(everyone, "w", "T", 1, 500*time.Millisecond); len(got) > 0 || x.claimed() > 0 {
		t.Errorf("%d handed out, %d claimed", len(got), x.claimed())
	}
	fresh.Store(true)
	if a := i.one("T"); a.JobID != run.JobID.String() {
		t.Errorf("handed out %+v", a)
	}
}

func TestAnAttemptIsKeptBackFromTheAnswerOfAPullThatIsNotFresh(t *testing.T) {
	x := newFixture(t)
	i, fresh := x.startStale(func(_ *Config, times *timing) { times.unasked = patience })
	fresh.Store(true)
	run := x.run("T", "", nil)
	got := i.got("T")
	fresh.Store(false)
	if handed := i.hand(got, "i"); len(handed.Attempts) > 0 {
		t.Fatal("handed out")
	}
	if got := i.claim(everyone, "other", "T", 1, 300*time.Millisecond); len(got) > 0 {
		t.Fatal("handed out to a later claim")
	}
	open := make(chan []pullwire.Attempt, 1)
	go func() { open <- i.claim(everyone, "third", "T", 1, patience) }()
	i.waitUntilOpen("T")
	fresh.Store(true)
	if got := <-open; len(got) != 1 || got[0].JobID != run.JobID.String() {
		t.Errorf("handed out %+v once it is fresh again", got)
	}
}

func TestAnAttemptThatWasKeptBackForTooLongIsGivenBack(t *testing.T) {
	x := newFixture(t)
	i, fresh := x.startStale(func(_ *Config, times *timing) { times.unasked = 50 * time.Millisecond })
	fresh.Store(true)
	run := x.run("T", "", nil)
	got := i.got("T")
	fresh.Store(false)
	i.hand(got, "i")
	if kind, _ := x.outcome(run); kind != string(jobevent.KindInterrupted) {
		t.Errorf("it is %s", kind)
	}
}

// The interleaving of the package comment: the attempt was settled by another worker before it is handed out.
func TestAnAttemptThatAnotherWorkerHasSettledIsNotHandedOut(t *testing.T) {
	x := newFixture(t)
	i := x.start(nil)
	run := x.run("T", "", nil)
	got := i.got("T")
	x.settleAsLost(run)
	<-got[0].ended // by the next heartbeat
	if handed := i.hand(got, "i"); len(handed.Attempts) > 0 {
		t.Error("handed out")
	}
	if kind, _ := x.outcome(run); kind != string(jobevent.KindLost) {
		t.Errorf("it is %s", kind)
	}
}

// settleAsLost is what another worker does with an attempt of a silent one.
func (x *fixture) settleAsLost(run jobevent.Run) {
	x.t.Helper()
	conn, err := pgx.Connect(x.t.Context(), x.url)
	if err != nil {
		x.t.Fatal(err)
	}
	defer func() { _ = conn.Close(x.t.Context()) }()
	if _, err := conn.Exec(x.t.Context(), workerdbtest.MoveAll); err != nil {
		x.t.Fatal(err)
	}
	_, err = conn.Exec(x.t.Context(), `update execution_attempts
		set outcome = 'lost', finished_at = now(), error_code = 'WORKER.LOST'
		where job_id = $1 and attempt = $2`, run.JobID, run.Attempt)
	if err != nil {
		x.t.Fatal(err)
	}
}

// claimElsewhere is what another worker does that claims an attempt.
func (x *fixture) claimElsewhere(run jobevent.Run) {
	x.t.Helper()
	store, err := workerdb.Open(x.t.Context(), pgtest.As(x.url, Name))
	if err != nil {
		x.t.Fatal(err)
	}
	defer store.Close()
	order := workerdb.Order{
		Key: workerdb.Key{JobID: run.JobID, Attempt: run.Attempt}, TraceID: run.JobID, TimeoutMs: 60_000,
	}
	if _, err := store.Claim(x.t.Context(), "another", []workerdb.Order{order}); err != nil {
		x.t.Fatal(err)
	}
}
