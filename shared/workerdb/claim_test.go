package workerdb_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/workerdb"
	"github.com/jobweaver/jobweaver/shared/workerdb/workerdbtest"
)

// heartbeatAnswered sends the heartbeat of a worker whose claims have all been answered.
func (f fixture) heartbeatAnswered(worker string, held ...workerdb.Held) {
	f.Helper()
	_, err := f.store.Heartbeat(f.Context(), workerdb.Heartbeat{
		WorkerID: worker, Queues: []string{"default"}, Held: held, Answered: f.store.LastClaim(),
	})
	if err != nil {
		f.Fatal(err)
	}
}

func (f fixture) count(sql string, args ...any) (n int) {
	f.Helper()
	if err := f.pool.QueryRow(f.Context(), sql, args...).Scan(&n); err != nil {
		f.Fatal(err)
	}
	return n
}

func TestOpenAttemptsAreFoundByTheLastHeartbeatAndLaterClaims(t *testing.T) {
	f := open(t)
	done, held, since := order(), order(), order()
	f.heartbeat("dead")
	f.claim("dead", done, held)
	f.settle("dead", completed(done))
	f.heartbeatAnswered("dead", workerdb.Held{Key: held.Key})
	f.claim("dead", since)
	if n := f.count("SELECT count(*) FROM claims"); n != 2 {
		t.Errorf("%d rows of claims, want that of the heartbeat and that of the later claim", n)
	}
	f.silence("dead", time.Minute)
	kinds := map[workerdb.Key]jobevent.Kind{}
	for _, o := range f.reap() {
		kinds[o.Key] = o.Kind
	}
	if len(kinds) != 2 || kinds[held.Key] != jobevent.KindInterrupted || kinds[since.Key] != jobevent.KindLost {
		t.Errorf("reaped: %v", kinds)
	}
	f.reap()
	if n := f.count("SELECT count(*) FROM claims WHERE worker_id = 'dead'"); n != 0 {
		t.Errorf("%d rows of claims are left after reaping", n)
	}
	f.claim("dead", order()) // as if it had been frozen within a claim
	if got := f.reap(); len(got) != 1 {
		t.Errorf("reaped after its late claim: %+v", got)
	}
}

func TestAHeartbeatKeepsUnansweredClaims(t *testing.T) {
	f := open(t)
	f.heartbeat("w1")
	f.claim("w1", order())
	f.heartbeat("w1") // began before the claim was answered
	f.silence("w1", time.Minute)
	if got := f.reap(); len(got) != 1 {
		t.Errorf("reaped %+v", got)
	}
}

func TestClaimsThatMeetKnownAttemptsAnswerAllOrders(t *testing.T) {
	f := open(t)
	for range 40 { // beyond the claims that expect known attempts
		a, b := order(), order()
		if got := f.claim("w1", a); got[0].State != workerdb.Claimed {
			t.Fatalf("new: %+v", got)
		}
		if got := f.claim("w2", b, a); got[0].State != workerdb.Claimed || got[1].State != workerdb.OpenElsewhere {
			t.Fatalf("one known: %+v", got)
		}
		for range 20 {
			if got := f.claim("w2", order()); got[0].State != workerdb.Claimed {
				t.Fatalf("new: %+v", got)
			}
		}
	}
}

func TestOneBatchSettlesAllKinds(t *testing.T) {
	f := open(t)
	quick, long, failed, begun, lost := order(), order(), order(), order(), order()
	f.heartbeat("w1")
	f.claim("w1", begun, lost)
	f.exec(workerdbtest.MoveAll)
	f.claim("w1", quick, long, failed)
	f.exec("UPDATE execution_attempts SET started_at = now() - interval '1 hour' WHERE job_id = $1", begun.JobID)
	f.exec(`UPDATE execution_attempts SET outcome = 'lost', error_code = 'WORKER.LOST', finished_at = now()
		WHERE job_id = $1`, lost.JobID)
	now := time.Now()
	outcome := func(o workerdb.Order, ran time.Duration) workerdb.Outcome {
		return workerdb.Outcome{Key: o.Key, Kind: workerdb.Completed, StartedAt: now.Add(-ran), FinishedAt: now}
	}
	bad := outcome(failed, time.Millisecond)
	bad.Kind, bad.ErrorCode = jobevent.KindFailed, "X"
	batch := []workerdb.Outcome{
		outcome(quick, time.Millisecond), bad, outcome(long, time.Minute), outcome(begun, time.Millisecond), outcome(lost, 0),
	}
	for _, part := range [][]workerdb.Outcome{batch[:3], batch, batch} { // the second time they have their outcomes
		got, err := f.store.Settle(t.Context(), "w1", part)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []struct {
			kind jobevent.Kind
			ran  time.Duration
		}{{workerdb.Completed, time.Millisecond}, {jobevent.KindFailed, time.Millisecond}, {workerdb.Completed, time.Minute},
			{workerdb.Completed, time.Hour}, {jobevent.KindLost, 0}}[:len(part)] {
			ran := got[i].FinishedAt.Sub(got[i].StartedAt)
			if got[i].Kind != want.kind || got[i].Key != part[i].Key || got[i].WorkerID != "w1" ||
				want.ran > 0 && (ran < want.ran-2*time.Microsecond || ran > want.ran+time.Minute/2) {
				t.Errorf("settled %d: %+v, ran %v", i, got[i], ran)
			}
		}
	}
}

func TestImpossibleRowsAreRefused(t *testing.T) {
	f := open(t)
	for set, possible := range map[string]bool{
		"outcome = NULL, finished_at = NULL, started_at = NULL": true,
		"outcome = NULL, finished_at = NULL":                    true,
		"outcome = 'completed'":                                 true,
		"outcome = 'completed', output = '{}'":                  true,
		"outcome = 'waiting', callback_timeout_ms = 1":          true,
		"outcome = 'failed', error_code = 'X'":                  true,
		"outcome = 'lost', error_code = 'X', started_at = NULL": true,
		"outcome = 'interrupted'":                               true,
		"outcome = 'cancelled', started_at = NULL":              true,
		"outcome = 'snoozed', retry_after_ms = 1":               true,
		"attempt = 0":         false,
		"timeout_ms = 0":      false,
		"retry_after_ms = -1": false,
		"outcome = 'done'":    false,
		"outcome = NULL":      false,
		"finished_at = NULL":  false,
		"outcome = NULL, finished_at = NULL, output = '{}'":                false,
		"outcome = 'completed', started_at = NULL":                         false,
		"outcome = 'completed', callback_timeout_ms = 1":                   false,
		"outcome = 'waiting'":                                              false,
		"outcome = 'waiting', callback_timeout_ms = 0":                     false,
		"outcome = 'waiting', callback_timeout_ms = 1, started_at = NULL":  false,
		"outcome = 'waiting', callback_timeout_ms = 1, output = '{}'":      false,
		"outcome = 'failed'":                                               false,
		"outcome = 'lost'":                                                 false,
		"outcome = 'failed', error_code = 'X', output = '{}'":              false,
		"outcome = 'failed', error_code = 'X', callback_timeout_ms = 1":    false,
		"outcome = 'cancelled', output = '{}'":                             false,
		"outcome = 'snoozed', callback_timeout_ms = 5, started_at = now()": false,
		"outcome = NULL, finished_at = NULL, callback_timeout_ms = 1":      false,
	} {
		a := order()
		f.claim("w1", a)
		f.exec(workerdbtest.MoveAll)
		if _, err := f.pool.Exec(t.Context(), `UPDATE execution_attempts SET outcome = 'interrupted', started_at = now(),
			finished_at = now() WHERE job_id = $1`, a.JobID); err != nil {
			t.Fatal(err)
		}
		_, err := f.pool.Exec(t.Context(), "UPDATE execution_attempts SET "+set+" WHERE job_id = $1", a.JobID)
		if pgErr, refused := err.(*pgconn.PgError); possible != (err == nil) || refused && pgErr.Code != "23514" { //nolint:errorlint // as pgx returns it
			t.Errorf("%s: %v", set, err)
		}
	}
}

func TestAnExpiredOrderIsSettledAsCancelled(t *testing.T) {
	f := open(t)
	plain, late, inTime := order(), order(), order()
	late.ExpiresAt, inTime.ExpiresAt = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	got := f.claim("w1", plain, late, inTime)
	if got[0].State != workerdb.Claimed || got[2].State != workerdb.Claimed || got[2].At.IsZero() {
		t.Errorf("in time: %+v", got)
	}
	if o := got[1].Outcome; got[1].State != workerdb.Settled || o.Kind != jobevent.KindCancelled || o.Key != late.Key ||
		o.ErrorCode != "SCHEDULER.EXPIRED" || o.Message == "" || !o.StartedAt.IsZero() || o.FinishedAt.IsZero() || o.TraceID != late.TraceID {
		t.Errorf("too late: %+v", got[1])
	}
	if got := f.claim("w2", late); got[0].Outcome.ErrorCode != "SCHEDULER.EXPIRED" {
		t.Errorf("too late, claimed again: %+v", got)
	}
	if got := f.claim("w1", inTime); got[0].State != workerdb.OpenMine || got[0].At.IsZero() {
		t.Errorf("claimed before: %+v", got)
	}
}
