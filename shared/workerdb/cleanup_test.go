package workerdb_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/workerdb"
)

var keep = workerdb.Retention{Attempts: 8 * 24 * time.Hour, Checkpoints: 60 * 24 * time.Hour}

func (f fixture) cleanUp(age time.Duration) int {
	f.Helper()
	n, err := f.store.Cleanup(f.Context(), workerdb.Retention{Attempts: age, Checkpoints: keep.Checkpoints}, func(time.Duration) bool { return true })
	if err != nil {
		f.Fatal(err)
	}
	return n
}

func TestCleanupDeletesByTheAgeOfTheAttempt(t *testing.T) {
	f := open(t)
	old := order()
	old.JobID[0], old.JobID[1] = 0, 1 // a UUIDv7 of 1970
	late, fresh, open := old, order(), old
	late.Attempt, open.Attempt = 2, 3
	f.heartbeat("gone")
	f.heartbeat("w1")
	f.claim("w1", old, late, fresh)
	f.claim("gone", open)
	for _, o := range []workerdb.Order{old, late, fresh} {
		f.settle("w1", completed(o))
	}
	f.exec("UPDATE execution_attempts SET finished_at = now() - interval '9 days' WHERE attempt = 1 AND job_id = $1", old.JobID)
	f.exec("UPDATE workers SET seen_at = now() - interval '2 days' WHERE worker_id = 'gone'")
	for _, want := range []int{1, 0} {
		if n := f.cleanUp(8 * 24 * time.Hour); n != want {
			t.Errorf("deleted %d, want %d", n, want)
		}
	}
	var left int
	if err := f.pool.QueryRow(t.Context(), "SELECT count(*) FROM workers").Scan(&left); err != nil || left != 2 {
		t.Errorf("%d workers left, want 2: one still has an open attempt (%v)", left, err)
	}
	if got := f.claim("w1", fresh, late); got[0].State != workerdb.Settled || got[1].State != workerdb.Settled {
		t.Errorf("after cleanup: %+v", got)
	}
}

// fill inserts settled attempts of old jobs, of which one in a hundred was settled just now, and returns one of these.
func (f fixture) fill(n int) workerdb.Order {
	f.Helper()
	f.exec(`WITH attempts AS (
			INSERT INTO execution_attempts (job_id, attempt, trace_id, worker_id, started_at, finished_at, outcome)
			SELECT uuidv7('-9 days'), 1, uuidv7(), 'w1', now(),
				now() - CASE WHEN i % 100 = 0 THEN interval '0' ELSE interval '9 days' END, 'completed'
			FROM generate_series(1, $1) AS i
			RETURNING job_id
		)
		INSERT INTO blocks (block_id, attempt, taken, moved)
		SELECT block_of(job_id), 1, 1::bigint << place_of(job_id), 1::bigint << place_of(job_id) FROM attempts`, n)
	o := order()
	var id uuid.UUID
	err := f.pool.QueryRow(f.Context(), "SELECT job_id FROM execution_attempts WHERE finished_at > now() - interval '1 day' LIMIT 1").Scan(&id)
	if err != nil {
		f.Fatal(err)
	}
	o.JobID = id
	return o
}

func TestCleanupOfManyAttemptsDoesNotBlockClaims(t *testing.T) {
	f := open(t)
	f.heartbeat("w1")
	kept := f.fill(200_000)
	other, err := workerdb.Open(t.Context(), f.pool.Config().ConnString())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	steps := 0
	var claims []time.Duration
	deleted, err := f.store.Cleanup(t.Context(), keep, func(time.Duration) bool {
		if steps++; steps%80 == 0 {
			n, err := other.Cleanup(t.Context(), keep, func(time.Duration) bool { return true })
			if n != 0 || err != nil {
				t.Errorf("another worker deletes %d beside it, %v", n, err)
			}
		}
		began := time.Now()
		got := f.claim("w1", order(), kept)
		claims = append(claims, time.Since(began))
		if got[0].State != workerdb.Claimed || got[1].State != workerdb.Settled {
			t.Errorf("claimed in between: %+v", got)
		}
		return true
	})
	if err != nil || deleted != 198_000 || steps != 800 {
		t.Errorf("deleted %d in %d steps, %v", deleted, steps, err)
	}
	slices.Sort(claims)
	t.Logf("claims in between took %s, at most %s", claims[len(claims)/2], claims[len(claims)-1])
	if n := f.cleanUp(8 * 24 * time.Hour); n != 0 {
		t.Errorf("%d were left", n)
	}
	if n, err := other.Cleanup(t.Context(), keep, func(time.Duration) bool { return true }); n != 0 || err != nil {
		t.Errorf("after the other cleanup: %d, %v", n, err)
	}
}

func TestCleanupEndsWhenPauseReturnsFalse(t *testing.T) {
	f := open(t)
	f.fill(5000)
	n, err := f.store.Cleanup(t.Context(), keep, func(time.Duration) bool { return false })
	if err != nil || n != 248 {
		t.Errorf("deleted %d, %v", n, err)
	}
	if n := f.cleanUp(8 * 24 * time.Hour); n != 4950-248 {
		t.Errorf("then %d", n)
	}
}

func TestClaimsOfADeletedWorkerAreReaped(t *testing.T) {
	f := open(t)
	a := order()
	f.heartbeat("w1")
	f.claim("forgotten", a)
	if got := f.reap(); len(got) != 0 {
		t.Errorf("reaped %+v", got)
	}
	f.cleanUp(8 * 24 * time.Hour)
	if got := f.reap(); len(got) != 1 || got[0].Key != a.Key || got[0].Kind != jobevent.KindLost {
		t.Errorf("reaped %+v", got)
	}
}
