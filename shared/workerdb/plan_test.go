package workerdb

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/pgtest"
	"github.com/jobweaver/jobweaver/shared/workerdb/internal/gen"
)

func openExplained(t *testing.T, url string) (*Store, *pgtest.Plans) {
	t.Helper()
	plans := &pgtest.Plans{}
	pool, err := pgpool.Open(t.Context(), url, pgpool.IndexOnly(), pgpool.PlannedOnce(), plans.Watch())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return &Store{pool: pool, q: gen.New(pool)}, plans
}

// With and without statistics, with 12,000 settled attempts, and while a long transaction keeps dead rows from vacuum,
// every statement visits only its rows, by their keys.
func TestPlansUseTheKeys(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("one goroutine asks PostgreSQL: there is nothing to race")
	}
	for _, statistics := range []string{"none", "of empty tables", "old", "fresh"} {
		t.Run("statistics "+statistics, func(t *testing.T) {
			t.Parallel()
			url := pgtest.Database(t, migrations.Worker)
			s, plans := openExplained(t, url)
			exec(t, s, "ALTER TABLE execution_attempts SET (autovacuum_enabled = off)")
			exec(t, s, "ALTER TABLE blocks SET (autovacuum_enabled = off)")
			exec(t, s, "ALTER TABLE claims SET (autovacuum_enabled = off)")
			if statistics == "old" {
				exec(t, s, "ANALYZE")
			}
			exec(t, s, `WITH attempts AS (
					INSERT INTO execution_attempts (job_id, attempt, trace_id, worker_id, started_at, finished_at, outcome)
					SELECT uuidv7(), 1, uuidv7(), 'w1', now(), now(), 'completed' FROM generate_series(1, 12000)
					RETURNING job_id
				)
				INSERT INTO blocks (block_id, attempt, taken, moved)
				SELECT block_of(job_id), 1, 1::bigint << place_of(job_id), 1::bigint << place_of(job_id) FROM attempts`)
			if statistics == "fresh" {
				exec(t, s, "ANALYZE")
			}
			if statistics == "of empty tables" {
				pgtest.LookEmpty(t, s.pool)
				pgtest.CheckSearches(t, s.pool, "internal/gen", nil, "execution_attempts", "blocks", "checkpoints")
			}
			long, err := s.pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := long.Exec(t.Context(), "SELECT count(*) FROM workers"); err != nil {
				t.Fatal(err)
			}
			for range 20 {
				doOfEverything(t, s)
			}
			checkPlans(t, plans.Seen())
			if err := long.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func exec(t *testing.T, s *Store, sql string, args ...any) {
	t.Helper()
	if _, err := s.pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// doOfEverything calls each method of the store with some hundreds of attempts.
func doOfEverything(t *testing.T, s *Store) {
	t.Helper()
	var orders []Order
	var held []Held
	var outcomes []Outcome
	now := time.Now()
	for range 300 {
		o := Order{Key: Key{uuid.Must(uuid.NewV7()), 1}, TraceID: uuid.New(), TimeoutMs: 1000}
		orders = append(orders, o)
		held = append(held, Held{Key: o.Key, StartedAt: now.Add(-time.Hour)})
		outcomes = append(outcomes, Outcome{Key: o.Key, Kind: Completed, StartedAt: now, FinishedAt: now})
	}
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	claim := func(worker string, part []Order) {
		_, err := s.Claim(t.Context(), worker, part)
		ok(err)
	}
	heartbeat := func(worker string, held []Held) {
		_, err := s.Heartbeat(t.Context(), Heartbeat{WorkerID: worker, Queues: []string{}, Held: held, Answered: s.LastClaim()})
		ok(err)
	}
	settle := func(worker string, part []Outcome) {
		_, err := s.Settle(t.Context(), worker, part)
		ok(err)
	}
	reap := func() {
		_, err := s.Reap(t.Context(), "w1")
		ok(err)
	}
	heartbeat("w1", nil)
	claim("w1", orders[:200])
	claim("w2", orders[100:])
	settle("w1", outcomes[:50])
	heartbeat("w1", held[:100])
	settle("w1", outcomes[40:60])
	var saves []Checkpoint
	var jobs []uuid.UUID
	for _, o := range orders[:100] {
		saves, jobs = append(saves, Checkpoint{Key: o.Key, Data: []byte("1")}), append(jobs, o.JobID)
	}
	_, err := s.SaveCheckpoints(t.Context(), "w1", saves)
	ok(err)
	_, err = s.Checkpoints(t.Context(), jobs)
	ok(err)
	ok(s.DeleteCheckpoints(t.Context(), jobs[:50]))
	_, err = s.Cancel(t.Context(), "w2", orders[60:70])
	ok(err)
	reap() // overdue
	heartbeat("w2", nil)
	exec(t, s, "UPDATE workers SET seen_at = now() - interval '1 minute'")
	claim("w2", orders[100:110])
	reap() // lost
	reap()
	claim("w2", orders[:10])
	heartbeat("w2", nil)
	var fresh []Order
	for range 20 {
		fresh = append(fresh, Order{Key: Key{uuid.Must(uuid.NewV7()), 1}, TimeoutMs: 1000})
	}
	claim("w2", fresh)
	_, err = s.Leave(t.Context(), "w2")
	ok(err)
	_, err = s.Cleanup(t.Context(), Retention{8 * 24 * time.Hour, 8 * 24 * time.Hour}, func(time.Duration) bool { return true })
	ok(err)
}

// A step of the cleanup continues along the key where the last one stopped, and visits no more rows than its limit.
func TestCleanupWalksTheKey(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("one goroutine asks PostgreSQL: there is nothing to race")
	}
	url := pgtest.Database(t, migrations.Worker)
	s, plans := openExplained(t, url)
	exec(t, s, "ALTER TABLE execution_attempts SET (autovacuum_enabled = off)")
	exec(t, s, "ALTER TABLE blocks SET (autovacuum_enabled = off)")
	exec(t, s, `WITH attempts AS (
			INSERT INTO execution_attempts (job_id, attempt, trace_id, worker_id, started_at, finished_at, outcome)
			SELECT uuidv7('-9 days'), 1, uuidv7(), 'w1', now(),
				now() - CASE WHEN i % 2 = 0 THEN interval '0' ELSE interval '9 days' END, 'completed'
			FROM generate_series(1, 10000) AS i
			RETURNING job_id
		)
		INSERT INTO blocks (block_id, attempt, taken, moved)
		SELECT block_of(job_id), 1, 1::bigint << place_of(job_id), 1::bigint << place_of(job_id) FROM attempts`)
	exec(t, s, `INSERT INTO blocks (block_id, attempt, taken, completed, places, started_at, finished_at, outputs)
		SELECT block_of(uuidv7('-9 days')), 1, 1, 1, '{0}', ARRAY[now()],
			ARRAY[now() - CASE WHEN i % 2 = 0 THEN interval '0' ELSE interval '9 days' END], '{null}'
		FROM generate_series(1, 10000) AS i`)
	if _, err := s.Cleanup(t.Context(), Retention{Attempts: 8 * 24 * time.Hour}, func(time.Duration) bool { return true }); err != nil {
		t.Fatal(err)
	}
	steps := plans.Seen()["AttemptDeleteOld"]
	if len(steps) < 80 {
		t.Errorf("%d steps", len(steps))
	}
	for _, plan := range steps {
		plan.Walk(func(n pgtest.Node) {
			visited := n.Loops * (n.Rows + n.Removed)
			if (n.Relation == "execution_attempts" || n.Relation == "blocks") &&
				(visited > 1000 || n.Type != "ModifyTable" && n.Index != n.Relation+"_pkey") {
				t.Errorf("a %s of %q visits %.0f rows", n.Type, n.Index, visited)
			}
		})
		if plan.Hit > 20_000 {
			t.Errorf("%d blocks", plan.Hit)
		}
	}
}

// checkPlans checks how many rows of attempts each statement has visited for at most 300 keys.
func checkPlans(t *testing.T, seen map[string][]pgtest.Node) {
	t.Helper()
	if len(seen) < 18 {
		t.Errorf("only %d statements were explained", len(seen))
	}
	for name, plans := range seen {
		for _, plan := range plans {
			plan.Walk(func(n pgtest.Node) {
				if visited := n.Loops * (n.Rows + n.Removed); (n.Relation == "execution_attempts" || n.Relation == "blocks") && visited > 2500 {
					t.Errorf("%s: a %s visits %.0f rows of %s", name, n.Type, visited, n.Relation)
				}
			})
			if plan.Hit > 20_000 {
				t.Errorf("%s: %d blocks", name, plan.Hit)
			}
		}
	}
}
