package schedulerdb

import (
	"cmp"
	"encoding/json"
	"flag"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

func newExplainedFixture(t *testing.T, url string) (fixture, *pgtest.Plans) {
	t.Helper()
	plans := &pgtest.Plans{}
	pool, err := pgpool.Open(t.Context(), url, pgpool.IndexOnly(), pgpool.PlannedOnce(), plans.Watch())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return fixture{t, &Store{pool: pool, cfg: Config{Lease: 15 * time.Second, MaxLost: 3}, cohort: jobevent.BlockSize}}, plans
}

// Without fresh statistics and with 80,000 jobs waiting, every statement finds its rows by an index, and sorts no
// others.
func TestPlansUseIndexesWithoutStatistics(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("one goroutine asks PostgreSQL: there is nothing to race")
	}
	for _, statistics := range []string{"none", "of empty tables"} {
		t.Run("statistics "+statistics, func(t *testing.T) { checkPlansWith(t, statistics) })
	}
}

func checkPlansWith(t *testing.T, statistics string) {
	t.Helper()
	t.Parallel()
	url := pgtest.Database(t, migrations.Scheduler)
	h, plans := newExplainedFixture(t, url)
	for _, table := range []string{"jobs", "ended", "ended_cohorts", "dependencies", "order_gaps"} {
		h.exec("ALTER TABLE " + table + " SET (autovacuum_enabled = off)") // it would bring statistics now and then
	}
	h.fill(80_000, "'PENDING'", "NULL", "NULL", "NULL")
	h.fillBeside()
	if statistics == "of empty tables" {
		pgtest.LookEmpty(t, h.pool)
		pgtest.CheckSearches(t, h.pool, "internal/gen", map[string]string{
			"InFlight": "jobs_in_flight dispatched", "RunningByJob": "jobs_in_flight dispatched",
			"OutByKind": "jobs_in_flight dispatched", "JobsCancelUnanswered": "jobs_in_flight", "KeysPending": "jobs_by_key",
			"QueuesPending": "jobs_pending cohorts_best", "LanesPending": "jobs_by_lane", "MembersSome": "cohorts_pkey",
			"MembersUnlisted": "dispatched",
		}, "jobs", "ended", "cohorts", "dispatched", "ended_cohorts", "dependencies", "order_gaps")
	}
	plans.Forget()
	h.doOfEverything()
	checkPlans(t, plans.Seen())
	for _, name := range controlledStatements {
		if len(plans.Seen()[name]) > 0 {
			t.Errorf("without any control %s ran", name)
		}
	}
}

// fillBeside inserts jobs of all other states beside those that wait.
func (h fixture) fillBeside() {
	h.Helper()
	h.tamper("DELETE FROM jobs WHERE status <> 'PENDING'")
	h.fill(20_000, "(ARRAY['SCHEDULED', 'RETRYING'])[1 + n % 2]", "now() + n * interval '1 s'", "NULL", "NULL")
	h.fill(500, "'RETRYING'", "now() - n * interval '1 s'", "NULL", "NULL")
	h.fill(300, "'WAITING'", "now() - n * interval '1 s'", "NULL", "NULL")
	h.exec("UPDATE jobs SET expires_at = now() + (random() - 0.02) * interval '1 h' WHERE job_id IN " +
		"(SELECT job_id FROM jobs WHERE status IN ('PENDING', 'SCHEDULED') ORDER BY job_id DESC LIMIT 10000)")
	h.fill(500, "'RUNNING'", "NULL", "now() + interval '15 s'", "11")
	h.fillTied(20_000)
	// Statistics of the empty table: as a rule it is empty.
	h.exec("UPDATE pg_class SET reltuples = 0, relpages = 1000 WHERE relname = 'order_gaps'")
	h.askAgain(0)
	h.fill(300, "'QUEUED'", "NULL", "now() - interval '1 s'", "11")
	h.exec(`INSERT INTO ended (job_id, trace_id, job_type, queue, payload, spec, version,
			attempt, retry_count, command_seq, history, moves, finished_at, created_at, updated_at, fairness_key)
		SELECT uuidv7(), uuidv7(), 'A', 'default', '1', '{"priority":0,"maxRetryCount":3,"timeoutMs":1000}', 3, 1, 0, 0, '[]', 1, now(), now(), now(), ''
		FROM generate_series(1, 20000)`)
	h.fillEndedCohorts(20_000, "0 s")
}

// fillEndedCohorts inserts that many pairs of jobs that completed together at this age.
func (h fixture) fillEndedCohorts(rows int, age string) {
	h.Helper()
	h.exec(`INSERT INTO ended_cohorts (block_id, places, version, queue, job_type, spec, fairness_key, worker_id, created_at, ended_at,
			history, trace_ids, payloads, started_at, finished_at)
		SELECT block_of(uuidv7(-$2::interval)), 5, 2, 'default', 'A', '{"priority":0,"maxRetryCount":3,"timeoutMs":1000}', '', 'w1', at, at,
			'{"at": "2026-01-01T00:00:00Z", "to": "QUEUED"}', ARRAY[uuidv7(), uuidv7()], '{1,2}', ARRAY[at, at], ARRAY[at, NULL]
		FROM generate_series(1, $1::int), LATERAL (SELECT now() - $2::interval) AS its (at)`, rows, age)
}

var plansJobs = flag.Int("plans.jobs", 0, "waiting jobs in the test of plans with a large backlog; 0: skip it")

// With millions of jobs of 10,000 fairness keys waiting, without statistics and with, every statement visits only the
// rows that it needs.
func TestPlansOfALargeBacklogUseIndexes(t *testing.T) {
	if *plansJobs == 0 {
		t.Skip("takes minutes: run it with make test-plans, or with -plans.jobs=5000000")
	}
	url := pgtest.Database(t, migrations.Scheduler)
	h, plans := newExplainedFixture(t, url)
	h.exec("ALTER TABLE jobs SET (autovacuum_enabled = off)")
	for left := *plansJobs; left > 0; left -= backlogPart {
		h.fill(min(left, backlogPart), "'PENDING'", "NULL", "NULL", "NULL", "fairness_key", "'key-' || n / 2 % 10000")
	}
	for run, statistics := range []string{"without statistics", "with statistics"} {
		if statistics == "with statistics" {
			h.exec("ANALYZE jobs")
		}
		t.Run(statistics, func(t *testing.T) {
			h.fillBeside()
			plans.Forget()
			h.doOfEverything()
			for slots := range 3 { // the place in the round is known from the second step on
				h.heartbeat(statistics, 50+50*slots, []int32{int32(1 + run)})
			}
			seen := plans.Seen()
			for _, name := range []string{"KeysBest", "JobsSendOut"} {
				if len(seen[name]) == 0 {
					t.Errorf("%s did not run", name)
				}
			}
			checkVisits(t, seen)
			for name, plans := range seen {
				blocks := 0
				for _, plan := range plans {
					blocks = max(blocks, plan.Hit+plan.Read)
				}
				t.Logf("%-24s %6d blocks at most, %d times", name, blocks, len(plans))
			}
		})
	}
}

// fill inserts rows into two queues. The arguments are SQL in which n is the row's number; more are names of further
// columns and their values. A test that counts blocks fills a table in one statement: updated rows leave dead ones, and
// a lookup steps over these again and again while a transaction on the server, even of another database, is older.
func (h fixture) fill(rows int, status, dueAt, leaseExpiresAt, partition string, more ...string) {
	h.Helper()
	columns, values := "", ""
	for i := 0; i < len(more); i += 2 {
		columns += ", " + more[i]
		values += ", " + more[i+1]
	}
	h.exec(`INSERT INTO jobs (job_id, trace_id, job_type, queue, payload, spec, status,
			attempt, rank, due_at, callback_deadline_at, lease_expires_at, partition, history, created_at`+columns+`)
		SELECT uuidv7(), uuidv7(), 'A', (ARRAY['default', 'mail'])[1 + n % 2], '1', '{"priority":0,"maxRetryCount":3,"timeoutMs":1000}', `+status+`,
			1, now() - n * interval '1 ms', `+dueAt+`, CASE WHEN `+status+` = 'WAITING' THEN now() END, `+
		leaseExpiresAt+`, `+partition+`, '{"at": "2026-01-01T00:00:00Z", "to": "PENDING"}', now()`+values+`
		FROM generate_series(1, $1::int) n`, rows)
}

// fillTied inserts jobs of a thousand ordering keys that wait for their turn and for dependencies.
func (h fixture) fillTied(rows int) {
	h.Helper()
	h.exec("DELETE FROM jobs WHERE ordering_key IS NOT NULL")
	h.exec("TRUNCATE dependencies, order_gaps")
	h.exec(`WITH inserted AS (
			INSERT INTO jobs (job_id, trace_id, job_type, queue, payload, spec, status, rank,
				history, created_at, blocked_by, waits_for, ordering_key, order_number)
			SELECT uuidv7(), uuidv7(), 'A', 'default', '1', '{"priority":0,"maxRetryCount":3,"timeoutMs":1000}', 'PENDING', now(),
				'{"at": "2026-01-01T00:00:00Z", "to": "PENDING"}', now(),
				CASE WHEN n <= 1000 THEN 'dependency' ELSE 'order' END, 1, 'k' || n % 1000, n
			FROM generate_series(1, $1::int) n
			RETURNING job_id
		), tied AS (INSERT INTO dependencies SELECT uuidv7(), job_id, 'completed' FROM inserted)
		INSERT INTO order_gaps SELECT uuidv7(), job_id, 'k', '' FROM inserted`, rows)
	h.exec("UPDATE dispatch_state SET more = json_build_object('dependents', $1::int)", rows)
}

// tied ingests jobs that wait for others, and releases them.
func (h fixture) tied() {
	h.Helper()
	first, line := newJob(), orderedJobs("k7", 2)
	line[1].OrderAfter = &line[0].JobID
	h.ingest(first)
	h.ingest(line[1])
	h.ingest(after(first), line[0])
	h.order(line[0], 1, jobevent.CommandCancel)
	h.order(first, 1, jobevent.CommandCancel)
	h.settle(ended(first, 1, jobstate.KindCancelled))
	h.tamper("UPDATE jobs SET blocked_by = NULL WHERE ordering_key = 'k7' AND blocked_by = 'dependency'")
}

// doOfEverything calls each method of the store with some dozens of jobs.
func (h fixture) doOfEverything() {
	h.Helper()
	now, soon := time.Now(), time.Now().Add(time.Minute)
	h.heartbeat("w1", 100, []int32{0})
	fresh := newJobs(60)
	for i := range fresh {
		fresh[i].Queue = []string{"default", "mail", "fresh"}[i%3]
	}
	fresh[0].RunAt = &soon
	h.ingest(fresh...)
	h.ingest(fresh...)
	out := h.settle(ended(fresh[59], 1, jobstate.KindFailed), completed(fresh[56], 1)).Runs
	var ids []uuid.UUID
	if err := h.pool.QueryRow(h.Context(), "SELECT array_agg(job_id) FROM jobs WHERE status = 'QUEUED' AND worker_id IS NULL AND partition = 0").
		Scan(&ids); err != nil || len(out) > 100 || len(ids) < 50 {
		h.Fatal(len(out), len(ids), err)
	}
	held := make([]jobevent.ListedAttempt, 50)
	outcomes := make([]Outcome, 50)
	for i := range held {
		attempt := 2
		if slices.ContainsFunc(fresh, func(j jobevent.Created) bool { return j.JobID == ids[i] }) {
			attempt = 1
		}
		held[i] = jobevent.ListedAttempt{JobID: ids[i], Attempt: attempt, StartedAt: &now}
		outcomes[i] = completed(jobevent.Created{JobID: ids[i]}, attempt)
	}
	h.heartbeat("w1", 100, []int32{0}, held...)
	if effects := h.settle(outcomes...); len(effects.Jobs) != 50 {
		h.Errorf("%d jobs completed", len(effects.Jobs))
	}
	h.due()
	for i := range fresh[:20] {
		h.order(fresh[i], 1, jobevent.CommandCancel)
	}
	for i := range fresh[:20] {
		h.order(fresh[i], 2, jobevent.CommandDelete)
	}
	h.askAgain(time.Minute)
	h.report(fresh[0], 0)
	h.tied()
}

// checkPlans checks the rows that each plan visits: at most 300 rows of jobs, except for statements that read all 800
// attempts in flight or the first thousand due jobs.
func checkPlans(t *testing.T, seen map[string][]pgtest.Node) {
	t.Helper()
	for _, name := range []string{
		"JobsDispatch", "QueuesPending", "InFlight", "JobsDue", "JobsOverdue", "NextDue", "JobsAskAgain",
		"JobsCancelUnanswered", "JobsComplete", "JobsLock", "JobsSave", "JobsDelete", "JobsSnapshot", "JobsRunOrders", "JobsNewer",
		"JobsStarted", "LeasesRenew", "JobsInsert", "JobsKnown", "DispatchLock", "DispatchSave", "DispatchState",
		"JobsEnds", "OrderKnown", "OrderTaken", "OrderGapsInsert", "OrderGapsClose", "TurnsTake", "TurnsYield", "TurnsOverdue", "EarlyCommands",
		"DependenciesInsert", "DependenciesOf", "DependenciesDelete", "DependenciesLeft", "DependenciesOverdue",
	} {
		if len(seen[name]) == 0 {
			t.Errorf("%s did not run", name)
		}
	}
	checkVisits(t, seen)
}

// checkVisits asserts that plans visit at most this number of rows, by an index.
func checkVisits(t *testing.T, seen map[string][]pgtest.Node) {
	t.Helper()
	dear := 40_000.0
	if *plansJobs > 0 {
		dear = 100_000
	}
	for name, plans := range seen {
		for _, plan := range plans {
			visited := 0.0
			plan.Walk(func(n pgtest.Node) {
				switch {
				case slices.Contains([]string{"jobs", "ended", "cohorts", "ended_cohorts", "dependencies", "order_gaps"}, n.Relation) && !slices.Contains([]string{"Index Scan", "Index Only Scan", "Tid Scan", "ModifyTable"}, n.Type),
					n.Type == "Sort" && n.Rows > 1000:
					t.Errorf("%s: %s of %.0f rows", name, n.Type, n.Rows*n.Loops)
				case n.Relation != "" && n.Index != "":
					visited += (n.Rows + n.Removed) * n.Loops
				}
			})
			// The planner only guesses the cost of a recursion, as if each row led to ten.
			isDear := plan.Cost > dear && name != "OrderGapsClose"
			if blocks := plan.Hit + plan.Read; visited > 3000 || blocks > 25_000 || isDear {
				text, _ := json.MarshalIndent(plan, "", " ")
				t.Errorf("%s visits %.0f rows in %d blocks: %s", name, visited, blocks, text)
			}
		}
	}
}

// With statistics of a time without attempts, the index of attempts that are out looks empty to the planner. It must
// not scan that index for each run order.
func TestRunOrdersAreReadByTheirIDs(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("one goroutine asks PostgreSQL: there is nothing to race")
	}
	h, plans := newExplainedFixture(t, pgtest.Database(t, migrations.Scheduler))
	h.exec("ALTER TABLE jobs SET (autovacuum_enabled = off)")
	h.fill(10_000, "'SCHEDULED'", "now() + interval '1 h'", "NULL", "NULL")
	h.exec("ANALYZE jobs")
	h.fill(2000, "'QUEUED'", "NULL", "now() + interval '15 s'", "11")
	h.ingest(newJobs(500)...)
	h.heartbeat("w1", 10, []int32{0})
	if len(plans.Seen()["JobsRunOrders"]) == 0 {
		t.Error("JobsRunOrders did not run")
	}
	for _, plan := range plans.Seen()["JobsRunOrders"] {
		plan.Walk(func(n pgtest.Node) {
			if n.Relation == "jobs" && n.Index != "jobs_pkey" {
				t.Errorf("reads by %s", n.Index)
			}
		})
	}
}

// An open transaction keeps the dead index entries of all dispatched jobs. Dispatching does not scan them.
func TestDispatchingDoesNotScanDeadEntries(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("one goroutine asks PostgreSQL: there is nothing to race")
	}
	const jobs = 20_000
	url := pgtest.Database(t, migrations.Scheduler)
	store, err := Open(t.Context(), url, Config{Lease: time.Minute, MaxLost: 3})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	h := fixture{t, store}
	h.exec("ALTER TABLE jobs SET (autovacuum_enabled = off)") // vacuum could remove no dead row, and would disturb the figures
	h.fill(jobs, "'PENDING'", "NULL", "NULL", "NULL")
	holder := h.begin()
	defer func() { _ = holder.Rollback(t.Context()) }()
	if _, err := holder.Exec(t.Context(), "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"); err != nil {
		t.Fatal(err)
	}
	if _, err := holder.Exec(t.Context(), "SELECT FROM jobs LIMIT 1"); err != nil {
		t.Fatal(err)
	}
	effects, err := h.Heartbeat(t.Context(), []jobevent.Heartbeat{{
		WorkerID: "w1", Slots: 2000, Partitions: map[string][]int32{"default": {0}, "mail": {1}},
	}})
	h.must(effects, err)
	h.exec("UPDATE workers SET seen_at = now() + interval '1 h'")
	done := 0
	for out := h.askAgain(0).Runs; len(out) > 0 && done < jobs-4000; {
		outcomes := make([]Outcome, len(out))
		for i, order := range out {
			outcomes[i] = completed(jobevent.Created{JobID: order.JobID}, int(order.Attempt))
		}
		done += len(out)
		out = h.settle(outcomes...).Runs
	}
	h.exec(`DO $$
		DECLARE first bigint := (SELECT max(n) FROM dispatch_state);
		BEGIN
			FOR i IN first .. first + 5000 LOOP
				UPDATE dispatch_state SET n = i + 1 WHERE n = i;
				COMMIT;
			END LOOP;
		END $$`) // one job at a time, each of which writes the ledger
	watched, plans := newExplainedFixture(t, url)
	var last uuid.UUID
	if err := h.pool.QueryRow(t.Context(), "SELECT job_id FROM jobs WHERE status = 'QUEUED' LIMIT 1").Scan(&last); err != nil {
		t.Fatal(err)
	}
	effects = watched.settle(completed(jobevent.Created{JobID: last}, 2))
	fresh := watched.ingest(newJobs(3)...)
	for range 4 {
		watched.ingest(newJobs(3)...)
	}
	if done < jobs-4000 || len(effects.Runs) != 1 || len(fresh.Runs) != 0 {
		t.Fatalf("%d done, then %d and %d out", done, len(effects.Runs), len(fresh.Runs))
	}
	for name, most := range map[string]int{
		"DispatchLock": 200, "DispatchSave": 200, "JobsDispatch": 200, "JobsComplete": 200, "WorkersLive": 200,
		"JobsInsert": 200,
	} {
		seen := plans.Seen()[name]
		if name == "JobsInsert" && len(seen) > 1 {
			// An insert into a full leaf looks up its few hundred dead entries before it splits the leaf, in one index or in
			// several. Only some inserts do, so the least figure counts.
			seen = []pgtest.Node{slices.MinFunc(seen, func(a, b pgtest.Node) int {
				return cmp.Compare(a.Hit+a.Read, b.Hit+b.Read)
			})}
		}
		for _, plan := range seen {
			if blocks := plan.Hit + plan.Read; blocks > most {
				text, _ := json.MarshalIndent(plan, "", " ")
				t.Errorf("%s looks at %d blocks: %s", name, blocks, text)
			}
		}
		if len(seen) == 0 {
			t.Errorf("%s did not run", name)
		}
	}
}
