package jobstore_test

import (
	"context"
	"testing"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

// Statements that run rarely find their rows by indexes, among 20,000 rows of the same key and without statistics.
func TestWhatTiesAJobIsFoundByItsKeys(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("one goroutine asks PostgreSQL: there is nothing to race")
	}
	s, plans := watched(t)
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := s.Pool.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	exec("alter table jobs set (autovacuum_enabled = off)")
	exec(`insert into jobs (job_id, job_type, queue, payload, spec, trace_id, status,
			ordering_key, order_number)
		select uuidv7(), 'X', 'default', '{}', '{"priority":0,"maxRetryCount":3,"timeoutMs":1000}', uuidv7(), 'PENDING', 'k', nextval('order_numbers')
		from generate_series(1, 20000)`)
	var ids []uuid.UUID
	if err := s.Pool.QueryRow(t.Context(), "select array_agg(job_id) from (select job_id from jobs limit 100) as hundred").Scan(&ids); err != nil {
		t.Fatal(err)
	}
	tied := apidbtest.NewJob()
	tied.Request.OrderingKey, tied.Request.After = "k", ids
	for range 10 {
		tied.JobID = uuid.Must(uuid.NewV7())
		if _, err := s.Jobs.InsertJobs(t.Context(), []jobstore.NewJob{tied}); err != nil {
			t.Fatal(err)
		}
	}
	if job, err := s.Jobs.Job(t.Context(), apidb.Everyone, tied.JobID); err != nil || len(job.BlockedBy) != jobstore.MaxDependencies+1 {
		t.Fatalf("it waits for %v, %v", job.BlockedBy, err)
	}
	for name, most := range map[string]float64{"OrderPlaces": 1, "JobsMissing": 100, "JobsBlocks": jobstore.MaxDependencies + 3} {
		seen := plans.Seen()[name]
		if len(seen) == 0 {
			t.Errorf("%s did not run", name)
		}
		for _, plan := range seen {
			plan.Walk(func(n pgtest.Node) {
				if n.Relation == "jobs" && (n.Index == "" || n.Rows*n.Loops > most || n.Removed > 0) {
					t.Errorf("%s visits the jobs by %s %s: %v rows %v times, %v for nothing", name, n.Type, n.Index, n.Rows, n.Loops, n.Removed)
				}
			})
		}
	}
}

// A list looks up only the first of many dependencies, and finds a page of a key's jobs by their key.
func TestAListLooksAtFewOfManyTies(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("one goroutine asks PostgreSQL: there is nothing to race")
	}
	s, plans := watched(t)
	for _, sql := range []string{
		"alter table jobs set (autovacuum_enabled = off)",
		`insert into jobs (job_id, job_type, queue, payload, spec, trace_id, status, version, snapshot)
			select uuidv7(), 'X', 'default', '{}', '{"priority":0,"maxRetryCount":3,"timeoutMs":1000}', uuidv7(), 'COMPLETED', 1, '{}' from generate_series(1, 10000)`,
		`insert into jobs (job_id, job_type, queue, payload, spec, trace_id, status, ordering_key, after_ids)
			select uuidv7(), 'X', 'default', '{}', '{"priority":0,"maxRetryCount":3,"timeoutMs":1000}', uuidv7(), 'PENDING', 'k' || n % 2, ids
			from generate_series(1, 20) n, (select array_agg(job_id) as ids from jobs) as ended`,
		`insert into jobs (job_id, job_type, queue, payload, spec, trace_id, status)
			select uuidv7(), 'X', 'default', '{}', '{"priority":0,"maxRetryCount":3,"timeoutMs":1000}', uuidv7(), 'PENDING' from generate_series(1, 10000)`,
	} {
		if _, err := s.Pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	jobs, next, err := s.Jobs.ListJobs(t.Context(), apidb.Everyone, jobstore.Filter{Filter: apibody.Filter{OrderingKey: "k1"}, Limit: 5})
	if err != nil || len(jobs) != 5 || next != jobs[4].JobID {
		t.Fatalf("%d jobs, next: %v, %v", len(jobs), next, err)
	}
	for name, most := range map[string]float64{"JobsNewest": 10, "JobsListed": 6, "JobsBlocks": 5 * jobstore.MaxListedAfter} {
		seen := plans.Seen()[name]
		if len(seen) == 0 {
			t.Errorf("%s did not run", name)
		}
		for _, plan := range seen {
			plan.Walk(func(n pgtest.Node) {
				if n.Relation == "jobs" && (n.Index == "" || n.Loops*max(n.Rows+n.Removed, 1) > most) {
					t.Errorf("%s visits the jobs by %s %s: %v rows %v times, %v for nothing", name, n.Type, n.Index, n.Rows, n.Loops, n.Removed)
				}
			})
		}
	}
}

// A transaction that has only waited for a key's lock does not hold it.
func TestAnUnansweredSubmitHoldsNoOrder(t *testing.T) {
	t.Parallel()
	pool, err := pgpool.Open(t.Context(), pgtest.Database(t, migrations.API), pgpool.IndexOnly(), pgpool.PlannedOnce())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	s := &fixture{&apidbtest.Fixture{Stores: apidbtest.Of(apidb.OverPool(pool)), Pool: pool}}
	holder, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	lock := jobstore.OrderLock("", "k")
	if err := gen.New(holder).OrdersLock(t.Context(), []int64{lock}); err != nil {
		t.Fatal(err)
	}
	inOrder := apidbtest.NewJob()
	inOrder.Request.OrderingKey = "k"
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		_, err := s.Jobs.InsertJobs(ctx, []jobstore.NewJob{inOrder})
		left <- err
	}()
	awaitLock(t, s)
	leave()
	if err := <-left; err == nil {
		t.Error("it was accepted while another had the key")
	}
	elsewhere := apidbtest.NewJob()
	elsewhere.Request.OrderingKey = "another"
	if _, err := s.Jobs.InsertJobs(t.Context(), []jobstore.NewJob{elsewhere}); err != nil {
		t.Errorf("another key: %v", err)
	}
	if err := holder.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	accepted, err := s.Jobs.InsertJobs(t.Context(), []jobstore.NewJob{inOrder})
	if err != nil || accepted[0].OrderAfter != nil {
		t.Errorf("after it: %+v, %v", accepted, err)
	}
}

// awaitLock returns once a transaction waits for a key.
func awaitLock(t *testing.T, s *fixture) {
	t.Helper()
	for waiting := false; !waiting; {
		err := s.Pool.QueryRow(t.Context(), `select exists (select 1 from pg_locks join pg_database on pg_database.oid = database
			where locktype = 'advisory' and not granted and datname = current_database())`).Scan(&waiting)
		if err != nil {
			t.Fatal(err)
		}
	}
}
