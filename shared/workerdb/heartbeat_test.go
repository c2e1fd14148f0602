package workerdb_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/pgtest"
	"github.com/jobweaver/jobweaver/shared/workerdb"
	"github.com/jobweaver/jobweaver/shared/workerdb/workerdbtest"
)

func TestAttemptsOfASilentWorkerAreLost(t *testing.T) {
	f := open(t)
	a, b, c := order(), order(), order()
	f.heartbeat("dead")
	f.heartbeat("alive")
	f.claim("dead", a, b)
	f.claim("alive", c)
	f.settle("dead", completed(b))
	f.silence("dead", 5*time.Second)
	if got := f.reap(); len(got) != 0 {
		t.Fatalf("silent for 5 s: %+v", got)
	}
	f.silence("dead", 11*time.Second)
	got := f.reap()
	if len(got) != 1 || got[0].Key != a.Key || got[0].Kind != jobevent.KindLost || got[0].ErrorCode != "WORKER.LOST" ||
		got[0].WorkerID != "dead" || got[0].TraceID != a.TraceID || !got[0].StartedAt.IsZero() {
		t.Fatalf("silent for 11 s: %+v", got)
	}
	if got := f.reap(); len(got) != 0 {
		t.Errorf("reaped twice: %+v", got)
	}
	changed := f.heartbeat("dead", workerdb.Held{Key: a.Key, StartedAt: time.Now()})
	if len(changed.Settled) != 1 || changed.Settled[0].Kind != jobevent.KindLost {
		t.Errorf("the worker wakes, and its heartbeat returns %+v", changed)
	}
	if got := f.settle("dead", completed(a)); got.Kind != jobevent.KindLost {
		t.Errorf("the worker wakes and settles %+v", got)
	}
}

// The database's clock is put forward between a worker's heartbeat and its call of Reap.
func TestAWorkerThatLooksSilentItselfReapsNoOther(t *testing.T) {
	f := open(t)
	f.heartbeat("alive")
	f.heartbeat("reaper")
	f.claim("alive", order())
	f.exec("UPDATE workers SET seen_at = seen_at - interval '20 s'")
	if got := f.reapAs("reaper"); len(got) != 0 {
		t.Errorf("lost: %+v", got)
	}
	if got := f.reap(); len(got) != 1 {
		t.Errorf("silent after the worker's next heartbeat, too: %+v", got)
	}
}

// The database's clock is put back between a worker's heartbeat and its call of Reap.
func TestADeadWorkerIsSilentAfterTheClockIsPutBack(t *testing.T) {
	f := open(t)
	f.heartbeat("dead")
	f.heartbeat("reaper")
	f.claim("dead", order())
	f.exec("UPDATE workers SET seen_at = seen_at + interval '1 h'")
	if got := f.reapAs("reaper"); len(got) != 0 {
		t.Errorf("a worker without a heartbeat since the step reaped %+v", got)
	}
	if changed := f.heartbeat("reaper"); changed.Unseen < 59*time.Minute {
		t.Errorf("its heartbeat after the step returns that it was unseen for %s", changed.Unseen)
	}
	free, err := f.store.FreeElsewhere(t.Context(), "reaper")
	if err != nil || len(free) > 0 {
		t.Errorf("the dead worker has free slots: %v, %v", free, err)
	}
	if got := f.reapAs("reaper"); len(got) != 1 || got[0].WorkerID != "dead" {
		t.Errorf("lost: %+v", got)
	}
}

// The database's clock is put forward while a worker runs an attempt.
func TestAnAttemptGoesOnAfterTheClockIsPutForward(t *testing.T) {
	f := open(t)
	a := order()
	a.TimeoutMs = 60_000
	runs := workerdb.Held{Key: a.Key, TimeoutMs: a.TimeoutMs, StartedAt: time.Now().Add(-time.Second)}
	f.heartbeat("worker")
	f.claim("worker", a)
	f.heartbeat("worker", runs)
	f.exec("UPDATE workers SET seen_at = seen_at - interval '1 h'")
	f.exec("UPDATE execution_attempts SET started_at = started_at - interval '1 h'")
	if got := f.reapAs("reaper"); len(got) != 0 {
		t.Errorf("before its worker's next heartbeat it is %+v", got)
	}
	f.heartbeat("worker", runs)
	if got := f.reap(); len(got) != 0 {
		t.Errorf("after its worker's next heartbeat it is %+v", got)
	}
	if got := f.settle("worker", completed(a)); got.FinishedAt.Sub(got.StartedAt) > time.Minute {
		t.Errorf("it ran from %s to %s", got.StartedAt, got.FinishedAt)
	}
}

// An attempt that waits for a slot while another one kills the worker is not to blame. But it may have started after
// the heartbeat and killed the worker itself: every second attempt of a job is lost.
func TestAnAttemptThatTheLastHeartbeatListedAsNotStartedIsInterrupted(t *testing.T) {
	f := open(t)
	running, waits, waitsAgain, since := order(), order(), order(), order()
	waitsAgain.Key.Attempt = 2
	f.heartbeat("dead")
	f.claim("dead", running, waits, waitsAgain)
	f.heartbeatAnswered("dead", workerdb.Held{Key: running.Key, StartedAt: time.Now().Add(-time.Second)},
		workerdb.Held{Key: waits.Key}, workerdb.Held{Key: waitsAgain.Key})
	f.claim("dead", since) // no heartbeat shows whether it started
	f.silence("dead", 11*time.Second)
	want := map[workerdb.Key]jobevent.Kind{
		running.Key: jobevent.KindLost, waits.Key: jobevent.KindInterrupted, waitsAgain.Key: jobevent.KindLost,
		since.Key: jobevent.KindLost,
	}
	got := f.reap()
	for _, o := range got {
		if o.Kind != want[o.Key] || (o.Kind == jobevent.KindLost) != (o.ErrorCode == "WORKER.LOST") || o.Message == "" {
			t.Errorf("want %s: %+v", want[o.Key], o)
		}
	}
	if len(got) != len(want) {
		t.Errorf("reaped %+v", got)
	}
}

func TestAHeartbeatWaitsForTheWorkerThatReapsItsAttempts(t *testing.T) {
	f := open(t)
	a := order()
	f.heartbeat("frozen")
	f.claim("frozen", a)
	f.exec(workerdbtest.MoveAll)
	f.silence("frozen", time.Minute)
	// A reaping worker has locked the worker's row and not yet committed.
	tx, err := f.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "SELECT FROM workers WHERE worker_id = 'frozen' FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	result := make(chan workerdb.Changed)
	go func() {
		changed, _ := f.store.Heartbeat(context.Background(), workerdb.Heartbeat{WorkerID: "frozen", Queues: []string{}, Held: []workerdb.Held{{Key: a.Key}}})
		result <- changed
	}()
	pgtest.UntilBlocked(t, f.pool.QueryRow)
	if _, err := tx.Exec(t.Context(), `UPDATE execution_attempts SET outcome = 'lost', error_code = 'WORKER.LOST', finished_at = now()`); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if changed := <-result; len(changed.Settled) != 1 {
		t.Errorf("the heartbeat returned %+v", changed)
	}
}

func TestAnAttemptALeasePastItsTimeoutFails(t *testing.T) {
	f := open(t)
	a, b, unstarted := order(), order(), order()
	f.heartbeat("w1")
	f.claim("w1", a, b, unstarted)
	started := time.Now().Add(-17 * time.Second)
	f.heartbeat("w1", workerdb.Held{Key: a.Key, TimeoutMs: 1000, StartedAt: started},
		workerdb.Held{Key: b.Key, TimeoutMs: 10_000, StartedAt: started}, workerdb.Held{Key: unstarted.Key, TimeoutMs: 1000})
	got := f.reap()
	if len(got) != 1 || got[0].Key != a.Key || got[0].Kind != jobevent.KindFailed || got[0].ErrorCode != "WORKER.TIMEOUT" || !got[0].Retryable {
		t.Fatalf("reaped %+v", got)
	}
	if d := got[0].StartedAt.Sub(started); d.Abs() > 5*time.Second {
		t.Errorf("started %v off", d)
	}
}

func TestAHeartbeatWritesTheStartOnce(t *testing.T) {
	f := open(t)
	a := order()
	f.claim("w1", a)
	f.heartbeat("w1", workerdb.Held{Key: a.Key, StartedAt: time.Now().Add(-time.Minute)})
	f.heartbeat("w1", workerdb.Held{Key: a.Key, StartedAt: time.Now().Add(-50 * time.Second)})
	out := completed(a) // it started a second ago
	if got := f.settle("w1", out); got.FinishedAt.Sub(got.StartedAt) < 59*time.Second {
		t.Errorf("ran from %v to %v", got.StartedAt, got.FinishedAt)
	}
}

func TestReapingSkipsLockedAttempts(t *testing.T) {
	f := open(t)
	f.heartbeat("dead")
	f.claim("dead", order())
	f.exec(workerdbtest.MoveAll)
	f.silence("dead", time.Minute)
	err := pgx.BeginFunc(t.Context(), f.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), "SELECT FROM execution_attempts FOR UPDATE"); err != nil {
			return err
		}
		if got := f.reap(); len(got) != 0 {
			t.Errorf("reaped a locked attempt: %+v", got)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := f.reap(); len(got) != 1 {
		t.Errorf("reaped %+v", got)
	}
}

func TestFreeElsewhereCountsTheSlotsOfOtherLiveWorkers(t *testing.T) {
	f := open(t)
	f.heartbeat("me")
	f.heartbeat("other")
	f.heartbeat("third")
	f.heartbeat("dead")
	f.silence("dead", time.Minute)
	free, err := f.store.FreeElsewhere(t.Context(), "me")
	if err != nil || free["default"] != 6 || free["mail"] != 6 || len(free) != 2 {
		t.Errorf("free %v, %v", free, err)
	}
}

func TestLeaveSettlesOpenAttempts(t *testing.T) {
	f := open(t)
	a, b, c := order(), order(), order()
	f.heartbeat("w1")
	f.claim("w1", a, b)
	f.claim("w2", c)
	f.settle("w1", completed(b))
	got, err := f.store.Leave(t.Context(), "w1")
	if err != nil || len(got) != 1 || got[0].Key != a.Key || got[0].Kind != jobevent.KindInterrupted || got[0].TraceID != a.TraceID {
		t.Fatalf("left %+v, %v", got, err)
	}
	if free, _ := f.store.FreeElsewhere(t.Context(), "w2"); len(free) != 0 {
		t.Errorf("the worker is still there: %v", free)
	}
}

// The server ends the transaction of the frozen heartbeat, which releases the worker's row.
func TestAWorkerThatFreezesWithinItsHeartbeatIsReaped(t *testing.T) {
	f := open(t)
	o := order()
	f.claim("w1", o)
	f.heartbeat("w1", workerdb.Held{Key: o.Key})
	f.exec("UPDATE workers SET seen_at = now() - interval '11 s'")
	frozen, err := f.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = frozen.Rollback(context.WithoutCancel(t.Context())) })
	if _, err := frozen.Exec(t.Context(), "UPDATE workers SET seen_at = now() WHERE worker_id = 'w1'"); err != nil {
		t.Fatal(err)
	}
	for began := time.Now(); ; <-time.After(20 * time.Millisecond) {
		lost := f.reap()
		if len(lost) == 1 && lost[0].Key == o.Key {
			return
		}
		if took := time.Since(began); len(lost) > 0 || took > 6*time.Second {
			t.Fatalf("after %s reaped %+v", took, lost)
		}
	}
}

// A worker that was silent wakes between the move of its attempts and their loss, and hangs.
func TestAnAttemptThatAnotherWorkerMovedHasATimeout(t *testing.T) {
	f := open(t)
	a := order()
	f.heartbeat("w1")
	f.claim("w1", a)
	f.exec(workerdbtest.MoveAll)
	f.exec("UPDATE execution_attempts SET timeout_ms = NULL")
	f.heartbeat("w1", workerdb.Held{Key: a.Key, TimeoutMs: 1000, StartedAt: time.Now().Add(-17 * time.Second)})
	if got := f.reap(); len(got) != 1 || got[0].ErrorCode != "WORKER.TIMEOUT" {
		t.Errorf("reaped %+v", got)
	}
}

// Another worker that shares a block is frozen while it has the block locked.
func TestAHeartbeatDoesNotWaitForABlock(t *testing.T) {
	f := open(t)
	a := order()
	f.heartbeat("w1")
	f.claim("w1", a)
	err := pgx.BeginFunc(t.Context(), f.pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), "SET LOCAL idle_in_transaction_session_timeout = 0")
		if err == nil {
			_, err = tx.Exec(t.Context(), "SELECT FROM blocks FOR UPDATE")
		}
		if err != nil {
			return err
		}
		changed := f.heartbeat("w1", workerdb.Held{Key: a.Key, StartedAt: time.Now().Add(-time.Second)})
		if changed.Failed == nil {
			t.Error("the attempt was moved")
		}
		f.silence("w1", 11*time.Second) // fails if the heartbeat's transaction is open
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if changed := f.heartbeat("w1", workerdb.Held{Key: a.Key, StartedAt: time.Now().Add(-time.Second)}); changed.Failed != nil {
		t.Error(changed.Failed)
	}
	if n := f.count("SELECT count(*) FROM execution_attempts WHERE started_at IS NOT NULL"); n != 1 {
		t.Errorf("%d attempts with a start", n)
	}
}
