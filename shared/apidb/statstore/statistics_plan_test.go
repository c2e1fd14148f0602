package statstore_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

func (h *fixture) fill(t *testing.T, n int, status jobstate.Status) {
	t.Helper()
	h.Exec(t, `insert into jobs (job_id, job_type, queue, payload, spec, trace_id, status, version, snapshot)
		select uuidv7(), (array['A', 'B', 'C'])[1 + n % 3], 'default', '{}', '{"priority":0,"maxRetryCount":3,"timeoutMs":1000}', uuidv7(), $1, 1, '{}'
		from generate_series(1, $2::int) n`, string(status), n)
}

// With many jobs, reading statistics visits none of them, and counting the waiting ones uses their index, page
// by page, whatever the server's statistics of the table.
func TestStatisticsOfManyJobs(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("one goroutine asks PostgreSQL: there is nothing to race")
	}
	h := open(t)
	h.Exec(t, "alter table jobs set (autovacuum_enabled = off)")
	h.fill(t, 85_000, jobstate.Completed)
	h.fill(t, 5_000, jobstate.Failed)
	h.fill(t, 100_000, jobstate.Pending)
	h.Exec(t, `insert into tallies (everyone, owner_id, grain, at, queue, job_type, what, n, kept, waited, ran, took) -- two hours of 20 types
		select true, '', 'minute', date_trunc('minute', now()) - m * interval '1 minute', 'default', 'T' || k % 20,
			(array['COMPLETED', 'FAILED', 'ACCEPTED'])[1 + k / 20], 100, 0, h, h, h
		from generate_series(0, 119) m, generate_series(0, 59) k, decode(repeat('06', 100), 'hex') h`)
	h.Exec(t, `insert into tallies (everyone, owner_id, grain, at, queue, job_type, what, n, kept, waited, ran, took, error_codes) -- and a month
		select true, '', grain, date_trunc(grain, now()) - m * ('1 ' || grain)::interval, 'default', 'T' || k, 'FAILED', 100, 0, h, h, h,
			'{"A": 60, "B": 40}'
		from (select 'hour' as grain, generate_series(3, 48) m union all select 'day', generate_series(2, 30)) of_grain,
			generate_series(0, 19) k, decode(repeat('06', 100), 'hex') h`)
	plans := &pgtest.Plans{}
	pool, err := pgpool.Open(t.Context(), h.URL, pgpool.IndexOnly(), pgpool.PlannedOnce(), plans.Watch())
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	q := gen.New(pool)
	seen, c := 0, gen.JobsCountPageParams{MaxJobs: 30_000}
	for more := true; more; {
		rows, err := q.JobsCountPage(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		page := 0
		for _, row := range rows {
			page += int(row.N)
			if row.LastID.String() > c.AfterID.String() {
				c.Shelf, c.AfterID = row.Shelf, row.LastID
			}
		}
		seen, more = seen+page, page == int(c.MaxJobs)
	}
	if _, err := q.TalliesOf(t.Context(), gen.TalliesOfParams{Everyone: true}); err != nil || seen != 100_000 {
		t.Fatal(seen, err)
	}
	for name, of := range plans.Seen() {
		for _, plan := range of {
			plan.Walk(func(n pgtest.Node) {
				if n.Relation == "jobs" && (n.Type != "Index Scan" || n.Index != "jobs_shelved" || n.Rows > 30_000 || n.Removed > 0) {
					t.Errorf("%s: %+v", name, n)
				}
			})
		}
	}
	h.census(t)
	h.longCensus(t)
	began := time.Now()
	got, err := h.Stats.Get(t.Context(), apidb.Everyone, "", "")
	if err != nil || got.Total[jobstate.Pending] != 100_000 {
		t.Errorf("got %v, %v", got.Total, err)
	}
	if n := len(got.Failures.Month.Codes); n != 2 {
		t.Errorf("%d error codes failed", n)
	}
	t.Logf("statistics over 8,700 tallies and 190,000 jobs took %s", time.Since(began))
	began = time.Now()
	if _, err := h.Stats.Get(t.Context(), apidb.Everyone, "", ""); err != nil {
		t.Error(err)
	}
	t.Logf("and while they are held %s", time.Since(began))
}

// plainApply is JobsApplyStatus without the part that enters statistics.
const plainApply = `with input as (
    select
        unnest($1::uuid[]) as job_id, unnest($2::text[]) as status, unnest($3::bigint[]) as version,
        unnest($4::int[]) as attempt, unnest($5::int[]) as retry_count, unnest($6::timestamptz[]) as updated_at,
        unnest($7::text[]) as snapshot
)
update jobs set
    status = input.status, version = input.version, attempt = input.attempt, retry_count = input.retry_count,
    updated_at = input.updated_at, snapshot = input.snapshot,
    progress = case when (jobs.progress ->> 'attempt')::int = input.attempt
                         and input.status in ('QUEUED', 'RUNNING', 'WAITING') then jobs.progress end,
    cancel_requested_at = case when input.status not in ('COMPLETED', 'FAILED', 'CANCELLED') then jobs.cancel_requested_at end
from input
where jobs.job_id = input.job_id and jobs.version < input.version`

// The test takes the best of many batches in one run, and repeats if need be, since other processes may load the
// machine.
func TestWhatTheStatisticsCostAJob(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("one goroutine asks PostgreSQL: there is nothing to race")
	}
	const jobs, rounds, most = 200, 60, 10 * time.Microsecond // far beyond chance
	h := open(t)
	pool, err := pgpool.Open(t.Context(), h.URL, pgpool.IndexOnly())
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	for range 3 {
		best := [2]time.Duration{time.Hour, time.Hour}
		for round := range 2 * rounds {
			p := h.endings(t, jobs)
			best[round%2] = min(best[round%2], applyOnce(t, pool, round%2 == 0, p))
		}
		cost := (best[1] - best[0]) / jobs
		t.Logf("a batch of %d words took %s, with statistics %s: %s a job", jobs, best[0], best[1], cost)
		if cost <= most {
			return
		}
	}
	t.Error("the statistics cost too much")
}

// endings returns statuses of completed jobs, as parameters of the statement.
func (h *fixture) endings(t *testing.T, n int) gen.JobsApplyStatusParams {
	t.Helper()
	var p gen.JobsApplyStatusParams
	var batch []jobstore.NewJob
	for range n {
		job := apidbtest.NewJob()
		batch = append(batch, job)
		w := apidbtest.Status(job.JobID, 2, jobstate.Completed, func(s *jobevent.Status) { s.Output = json.RawMessage(`{"ok": true}`) })
		p.JobIDs = append(p.JobIDs, w.JobID)
		p.Statuses, p.Versions = append(p.Statuses, w.Status.Status), append(p.Versions, w.Version)
		p.Attempts, p.RetryCounts = append(p.Attempts, 1), append(p.RetryCounts, 0)
		p.UpdatedAts, p.Snapshots = append(p.UpdatedAts, w.UpdatedAt), append(p.Snapshots, string(w.JSON))
		p.Times = append(p.Times, 0x202020)
	}
	if _, err := h.Jobs.InsertJobs(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	return p
}

// applyOnce times the statement alone.
func applyOnce(t *testing.T, pool *pgxpool.Pool, plain bool, p gen.JobsApplyStatusParams) time.Duration {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if plain {
		_, err = tx.Exec(t.Context(), plainApply, p.JobIDs, p.Statuses, p.Versions, p.Attempts, p.RetryCounts, p.UpdatedAts, p.Snapshots)
	} else {
		_, err = gen.New(tx).JobsApplyStatus(t.Context(), p)
	}
	took := time.Since(began)
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	return took
}

// The table had no rows when the server last looked, and the keys of a minute are many.
func TestATallyIsFoundByItsWholeKeyWhateverTheServersStatistics(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.Exec(t, "alter table tallies set (autovacuum_enabled = off)")
	h.Exec(t, "vacuum analyze tallies")
	at := time.Now().UTC().Truncate(time.Minute)
	h.Exec(t, `insert into tallies (everyone, owner_id, grain, at, queue, job_type, what, n, kept)
		select false, 'acme', 'minute', $1, 'default', 'T' || n, 'COMPLETED', 1, 1 from generate_series(1, 1000) as n`, at)
	plans := &pgtest.Plans{}
	pool, err := pgpool.Open(t.Context(), h.URL, pgpool.IndexOnly(), pgpool.PlannedOnce(), plans.Watch())
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	rows, err := gen.New(pool).TallyFind(t.Context(), gen.TallyFindParams{
		Everyones: []bool{false, false, true}, OwnerIDs: []string{"acme", "acme", ""}, Grains: []string{"minute", "minute", "minute"},
		Ats: []time.Time{at, at, at}, Queues: []string{"default", "default", "default"}, JobTypes: []string{"T7", "U", "T7"},
		Whats: []string{"COMPLETED", "COMPLETED", "COMPLETED"},
	})
	if err != nil || len(rows) != 1 || rows[0].JobType != "T7" {
		t.Fatalf("found %+v, %v", rows, err)
	}
	for name, of := range plans.Seen() {
		for _, plan := range of {
			plan.Walk(func(n pgtest.Node) {
				if n.Relation == "tallies" && (n.Index != "tallies_pkey" || n.Removed > 0) {
					t.Errorf("%s: %+v", name, n)
				}
			})
		}
	}
}
