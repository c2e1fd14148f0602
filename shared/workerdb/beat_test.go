package workerdb_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/workerdb"
)

func TestAttemptsOfASilentWorkerAreLost(t *testing.T) {
	f := open(t)
	a, b, c := order(), order(), order()
	f.beat("dead")
	f.beat("alive")
	f.claim("dead", a, b)
	f.claim("alive", c)
	f.settle("dead", completed(b))
	f.silence("dead", 5*time.Second)
	if got := f.judge(); len(got) != 0 {
		t.Fatalf("silent for 5 s: %+v", got)
	}
	f.silence("dead", 11*time.Second)
	got := f.judge()
	if len(got) != 1 || got[0].Key != a.Key || got[0].Kind != jobevent.KindLost || got[0].ErrorCode != "WORKER.LOST" ||
		got[0].WorkerID != "dead" || got[0].TraceID != a.TraceID || !got[0].StartedAt.IsZero() {
		t.Fatalf("silent for 11 s: %+v", got)
	}
	if got := f.judge(); len(got) != 0 {
		t.Errorf("judged twice: %+v", got)
	}
	changed := f.beat("dead", workerdb.Held{Key: a.Key, StartedAt: time.Now()})
	if len(changed.Settled) != 1 || changed.Settled[0].Kind != jobevent.KindLost {
		t.Errorf("the worker wakes and reads %+v", changed)
	}
	if got := f.settle("dead", completed(a)); got.Kind != jobevent.KindLost {
		t.Errorf("the worker wakes and settles %+v", got)
	}
}

// The database's clock is put forward between a worker's beat and its verdict.
func TestAJudgeThatLooksSilentItselfJudgesNobody(t *testing.T) {
	f := open(t)
	f.beat("alive")
	f.beat("judge")
	f.claim("alive", order())
	f.exec("UPDATE workers SET seen_at = seen_at - interval '20 s'")
	if got := f.judgeAs("judge"); len(got) != 0 {
		t.Errorf("lost: %+v", got)
	}
	if got := f.judge(); len(got) != 1 {
		t.Errorf("silent by the judge's own clock, too: %+v", got)
	}
}

// The database's clock is put back between a worker's beat and its verdict.
func TestAClockThatIsPutBackKeepsNoDeadWorkerAlive(t *testing.T) {
	f := open(t)
	f.beat("dead")
	f.beat("judge")
	f.claim("dead", order())
	f.exec("UPDATE workers SET seen_at = seen_at + interval '1 h'")
	if got := f.judgeAs("judge"); len(got) != 0 {
		t.Errorf("a judge that was not seen since the step calls lost: %+v", got)
	}
	if changed := f.beat("judge"); changed.Unseen < 59*time.Minute {
		t.Errorf("its beat after the step says that it was unseen for %s", changed.Unseen)
	}
	free, err := f.store.FreeElsewhere(t.Context(), "judge")
	if err != nil || len(free) > 0 {
		t.Errorf("the dead worker has free slots: %v, %v", free, err)
	}
	if got := f.judgeAs("judge"); len(got) != 1 || got[0].WorkerID != "dead" {
		t.Errorf("lost: %+v", got)
	}
}

// The database's clock is put forward while a worker runs an attempt.
func TestAClockThatIsPutForwardEndsNoAttempt(t *testing.T) {
	f := open(t)
	a := order()
	a.TimeoutMs = 60_000
	runs := workerdb.Held{Key: a.Key, StartedAt: time.Now().Add(-time.Second)}
	f.beat("worker")
	f.claim("worker", a)
	f.beat("worker", runs)
	f.exec("UPDATE workers SET seen_at = seen_at - interval '1 h'")
	f.exec("UPDATE execution_attempts SET started_at = started_at - interval '1 h'")
	if got := f.judgeAs("judge"); len(got) != 0 {
		t.Errorf("before its worker's next beat it is %+v", got)
	}
	f.beat("worker", runs)
	if got := f.judge(); len(got) != 0 {
		t.Errorf("after its worker's next beat it is %+v", got)
	}
	if got := f.settle("worker", completed(a)); got.FinishedAt.Sub(got.StartedAt) > time.Minute {
		t.Errorf("it ran from %s to %s", got.StartedAt, got.FinishedAt)
	}
}

// What waits for a slot beside a job that kills its worker has lost nothing. But it may have started after
// the beat, and be the one that killed the worker: every second attempt of a job counts.
func TestAnAttemptThatHadNotStartedByTheLastBeatIsOnlyInterrupted(t *testing.T) {
	f := open(t)
	running, waits, waitsAgain, since := order(), order(), order(), order()
	waitsAgain.Key.Attempt = 2
	f.beat("dead")
	f.claim("dead", running, waits, waitsAgain)
	f.beatAnswered("dead", workerdb.Held{Key: running.Key, StartedAt: time.Now().Add(-time.Second)},
		workerdb.Held{Key: waits.Key}, workerdb.Held{Key: waitsAgain.Key})
	f.claim("dead", since) // nobody knows whether it started
	f.silence("dead", 11*time.Second)
	want := map[workerdb.Key]jobevent.Kind{
		running.Key: jobevent.KindLost, waits.Key: jobevent.KindInterrupted, waitsAgain.Key: jobevent.KindLost,
		since.Key: jobevent.KindLost,
	}
	got := f.judge()
	for _, o := range got {
		if o.Kind != want[o.Key] || (o.Kind == jobevent.KindLost) != (o.ErrorCode == "WORKER.LOST") || o.Message == "" {
			t.Errorf("want %s: %+v", want[o.Key], o)
		}
	}
	if len(got) != len(want) {
		t.Errorf("judged %+v", got)
	}
}

func TestABeatWaitsForTheVerdictOnItsWorker(t *testing.T) {
	f := open(t)
	a := order()
	f.beat("frozen")
	f.claim("frozen", a)
	f.silence("frozen", time.Minute)
	// A judge that has locked the worker's row and not yet committed.
	tx, err := f.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "SELECT FROM workers WHERE worker_id = 'frozen' FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	beaten := make(chan workerdb.Changed)
	go func() {
		changed, _ := f.store.Beat(context.Background(), workerdb.Beat{WorkerID: "frozen", Queues: []string{}, Held: []workerdb.Held{{Key: a.Key}}})
		beaten <- changed
	}()
	f.waitForLock()
	if _, err := tx.Exec(t.Context(), `UPDATE execution_attempts SET outcome = 'lost', error_code = 'WORKER.LOST', finished_at = now()`); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if changed := <-beaten; len(changed.Settled) != 1 {
		t.Errorf("the beat read %+v", changed)
	}
}

// waitForLock returns once a session of this database waits for a lock.
func (f fixture) waitForLock() {
	f.Helper()
	for waiting := false; !waiting; {
		err := f.pool.QueryRow(f.Context(), `SELECT EXISTS (SELECT FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock')`).Scan(&waiting)
		if err != nil {
			f.Fatal(err)
		}
	}
}

func TestAnAttemptALeasePastItsTimeoutIsEnded(t *testing.T) {
	f := open(t)
	a, b, unstarted := order(), order(), order()
	a.TimeoutMs, b.TimeoutMs = 1000, 10_000
	f.beat("w1")
	f.claim("w1", a, b, unstarted)
	started := time.Now().Add(-17 * time.Second)
	f.beat("w1", workerdb.Held{Key: a.Key, StartedAt: started}, workerdb.Held{Key: b.Key, StartedAt: started}, workerdb.Held{Key: unstarted.Key})
	got := f.judge()
	if len(got) != 1 || got[0].Key != a.Key || got[0].Kind != jobevent.KindFailed || got[0].ErrorCode != "WORKER.TIMEOUT" || !got[0].Retryable {
		t.Fatalf("judged %+v", got)
	}
	if d := got[0].StartedAt.Sub(started); d.Abs() > 5*time.Second {
		t.Errorf("started %v off", d)
	}
}

func TestABeatWritesTheStartOnce(t *testing.T) {
	f := open(t)
	a := order()
	f.claim("w1", a)
	f.beat("w1", workerdb.Held{Key: a.Key, StartedAt: time.Now().Add(-time.Minute)})
	f.beat("w1", workerdb.Held{Key: a.Key, StartedAt: time.Now().Add(-50 * time.Second)})
	out := completed(a) // which says it started a second ago
	if got := f.settle("w1", out); got.FinishedAt.Sub(got.StartedAt) < 59*time.Second {
		t.Errorf("ran from %v to %v", got.StartedAt, got.FinishedAt)
	}
}

func TestTwoJudgesDoNotWaitForEachOther(t *testing.T) {
	f := open(t)
	f.beat("dead")
	f.claim("dead", order())
	f.silence("dead", time.Minute)
	err := pgx.BeginFunc(t.Context(), f.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), "SELECT FROM execution_attempts FOR UPDATE"); err != nil {
			return err
		}
		if got := f.judge(); len(got) != 0 {
			t.Errorf("judged a locked attempt: %+v", got)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := f.judge(); len(got) != 1 {
		t.Errorf("judged %+v", got)
	}
}

func TestFreeSlotsOfOtherLiveWorkers(t *testing.T) {
	f := open(t)
	f.beat("me")
	f.beat("other")
	f.beat("third")
	f.beat("dead")
	f.silence("dead", time.Minute)
	free, err := f.store.FreeElsewhere(t.Context(), "me")
	if err != nil || free["default"] != 6 || free["mail"] != 6 || len(free) != 2 {
		t.Errorf("free %v, %v", free, err)
	}
}

func TestLeaveSettlesWhatIsOpen(t *testing.T) {
	f := open(t)
	a, b, c := order(), order(), order()
	f.beat("w1")
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

// protocol #1
func TestAWorkerThatFreezesInItsBeatIsJudgedAllTheSame(t *testing.T) {
	f := open(t)
	o := order()
	f.claim("w1", o)
	f.beat("w1", workerdb.Held{Key: o.Key})
	f.exec("UPDATE workers SET seen_at = now() - interval '11 s'")
	frozen, err := f.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = frozen.Rollback(context.WithoutCancel(t.Context())) })
	if _, err := frozen.Exec(t.Context(), "UPDATE workers SET seen_at = now() WHERE worker_id = 'w1'"); err != nil {
		t.Fatal(err)
	}
	for began := time.Now(); ; {
		lost := f.judge()
		if len(lost) == 1 && lost[0].Key == o.Key {
			return
		}
		if took := time.Since(began); len(lost) > 0 || took > 6*time.Second {
			t.Fatalf("after %s lost are %+v", took, lost)
		}
	}
}
