package schedulerdb

import (
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/internal/gen"
)

// pass lets the leases in the rows age by d, in up to 100 steps, and returns how many attempts are asked about
// meanwhile.
func (h fixture) pass(d time.Duration) (asked int) {
	h.Helper()
	step := max(5*time.Second, d/100)
	for range d / step {
		h.moveLeases(-step)
		asked += len(h.askAgain(step).Runs)
	}
	return asked
}

// moveLeases moves the ends of all leases.
func (h fixture) moveLeases(by time.Duration) {
	h.Helper()
	h.exec("UPDATE jobs SET lease_expires_at = lease_expires_at + $1::interval", by)
	h.exec("UPDATE dispatched SET lease_expires_at = lease_expires_at + $1::interval", by)
}

// serve inserts a worker that has been live for an hour and lists no attempts.
func (h fixture) serve(worker string) {
	h.Helper()
	h.heartbeat(worker, 200, []int32{0, 1})
	h.exec("UPDATE workers SET since = now() - interval '1 hour'")
}

func TestInAQueueWithoutAWorkerOneAttemptAtATimeIsAskedAbout(t *testing.T) {
	h := newFixture(t)
	h.serve("w1")
	jobs := newJobs(200)
	if effects := h.ingest(jobs...); len(effects.Runs) != 200 {
		t.Fatalf("%d attempts are out", len(effects.Runs))
	}
	h.exec("DELETE FROM workers")
	if n := h.pass(5 * time.Minute); n < 3 || n > 7 {
		t.Errorf("five minutes without a worker made %d records", n)
	}
	if n := h.pass(time.Hour); n < 8 || n > 20 {
		t.Errorf("an hour more made %d records", n)
	}
	h.heartbeat("w2", 200, []int32{0})
	if n := h.pass(10 * time.Second); n > 1 {
		t.Errorf("a worker that has just come was asked about %d attempts, whose orders its topic has", n)
	}
	h.exec("UPDATE workers SET since = now() - interval '16 s'")
	if n := h.pass(10 * time.Second); n < 199 || n > 200 {
		t.Errorf("a worker that has been there for a lease was asked about %d of 200 attempts", n)
	}
}

func TestEachUnansweredQuestionDelaysTheNext(t *testing.T) {
	h := newFixture(t)
	h.serve("w1")
	jobs := newJobs(20)
	h.ingest(jobs...)
	if n := h.pass(5 * time.Minute); n < 20*4 || n > 20*6 {
		t.Errorf("20 attempts were asked about %d times in five minutes", n)
	}
	var held []jobevent.ListedAttempt
	for _, job := range jobs {
		held = append(held, jobevent.ListedAttempt{JobID: job.JobID, Attempt: 1})
	}
	h.heartbeat("w1", 200, []int32{0}, held...)
	if n := h.pass(20 * time.Second); n != 20 {
		t.Errorf("after a heartbeat that listed them they were asked about %d times in 20 s", n)
	}
	h.settle(ended(jobs[0], 1, "interrupted"))
	h.exec("UPDATE jobs SET lease_expires_at = now() + interval '5 min', asked = 5 WHERE attempt = 1")
	if n := h.pass(20 * time.Second); n != 1 {
		t.Errorf("the next attempt was asked about %d times in 20 s", n)
	}
}

// PostgreSQL's clock is put back by an hour. The instants of earlier leases and workers then lie an hour ahead.
func TestAttemptsAreAskedAboutAfterTheClockWasPutBack(t *testing.T) {
	h := newFixture(t)
	h.serve("w1")
	jobs := newJobs(20)
	h.ingest(jobs...)
	h.moveLeases(time.Hour)
	h.heartbeat("dead", 200, []int32{1})
	h.exec("UPDATE workers SET seen_at = now() + interval '1 h', since = now() + interval '50 min'")
	h.heartbeat("w1", 200, []int32{0})
	if n := h.pass(10 * time.Second); n > 0 {
		t.Errorf("within a lease %d attempts were asked about", n)
	}
	if n := h.pass(10 * time.Second); n != 20 {
		t.Errorf("after a lease %d of 20 attempts were asked about", n)
	}
	h.moveLeases(10 * time.Minute)
	if n := h.pass(20 * time.Second); n != 20 {
		t.Errorf("after another step %d of 20 attempts were asked about", n)
	}
	if live, err := gen.New(h.pool).WorkersLive(t.Context(), silentAfter); err != nil || len(live) != 1 {
		t.Errorf("one worker has sent a heartbeat since, and there are %v, %v", live, err)
	}
}

func TestADriftThatTwoWatchdogsCountIsEnteredOnce(t *testing.T) {
	h := newFixture(t)
	h.serve("w1")
	jobs := newJobs(3)
	h.ingest(jobs...)
	h.exec("DELETE FROM jobs WHERE job_id = $1", jobs[0].JobID)
	counted := make([]Count, 2)
	for i := range counted {
		var err error
		if counted[i], err = h.Count(h.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range counted {
		h.must(h.AskAgain(h.Context(), c, 0))
	}
	if drift := h.drift(); !drift.Empty() {
		t.Errorf("the ledger is off by %+v", drift)
	}
	h.exec("DELETE FROM jobs WHERE job_id = $1", jobs[1].JobID)
	h.askAgain(0)
	if drift := h.drift(); !drift.Empty() {
		t.Errorf("a later drift is not entered: %+v", drift)
	}
}

func TestAHeartbeatInPartsHoldsTheAttemptsOfAllParts(t *testing.T) {
	h := newFixture(t)
	jobs := newJobs(3)
	h.ingest(jobs...)
	now := time.Now()
	heartbeats := make([]jobevent.Heartbeat, len(jobs))
	for i, job := range jobs {
		heartbeats[i] = jobevent.Heartbeat{
			WorkerID: "w", Slots: 3, Partitions: map[string][]int32{"default": {0}}, Part: i,
			Attempts: []jobevent.ListedAttempt{{JobID: job.JobID, Attempt: 1, StartedAt: &now}},
		}
	}
	h.must(h.Heartbeat(t.Context(), heartbeats[:2]))
	h.must(h.Heartbeat(t.Context(), heartbeats[2:])) // the last part comes in a batch of its own
	for _, job := range jobs {
		h.wantStatus(job, "RUNNING")
	}
}
