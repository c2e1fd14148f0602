package jobstore_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/apidb/operationstore"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

// Whatever jobs other owners have, in the same states and under the same keys, an owner's lists and operations visit
// only the owner's rows, and few of them unless a filter matches rarely. This holds without statistics, and however few
// rows match.
func TestAnOwnersListsVisitTheirOwnRowsOnly(t *testing.T) {
	t.Parallel()
	s, plans := watched(t)
	fillOwned(t, s, 20_000, 300)
	fanOut := uuid.New()
	for owner, id := range map[string]uuid.UUID{"acme": fanOut, "umbrella": uuid.New()} {
		const elements = `update jobs set fan_out_id = $2, element = row_number from (
				select job_id as id, row_number() over () from jobs where owner_id = $1 limit 200
			) as numbered where job_id = id`
		if _, err := s.Pool.Exec(t.Context(), elements, owner, id); err != nil {
			t.Fatal(err)
		}
	}
	plans.Forget()
	acme := apidb.OwnerOf("acme")
	must := func(what string, n, want int, err error) {
		t.Helper()
		if err != nil || n != want {
			t.Errorf("%s: %d, want %d, %v", what, n, want, err)
		}
	}
	for what, c := range map[string]struct {
		filter jobstore.Filter
		want   int
	}{
		"all":             {jobstore.Filter{Limit: 50}, 50},
		"FAILED ones":     {jobstore.Filter{Filter: apibody.Filter{Status: []jobstate.Status{jobstate.Failed}}, Limit: 50}, 50},
		"COMPLETED ones":  {jobstore.Filter{Filter: apibody.Filter{Status: []jobstate.Status{jobstate.Completed}}, Limit: 50}, 50},
		"a rare tag":      {jobstore.Filter{Filter: apibody.Filter{Tag: "rare"}, Limit: 50}, 1},
		"no such tag":     {jobstore.Filter{Filter: apibody.Filter{Tag: "none", Status: []jobstate.Status{jobstate.Completed}}, Limit: 50}, 0},
		"an ordering key": {jobstore.Filter{Filter: apibody.Filter{OrderingKey: "k"}, Limit: 50}, 50},
	} {
		jobs, _, err := s.Jobs.ListJobs(t.Context(), acme, c.filter)
		must(what, len(jobs), c.want, err)
	}
	for _, whose := range []apidb.Owner{acme, apidb.Everyone} {
		jobs, _, err := s.Jobs.ListJobs(t.Context(), whose, jobstore.Filter{Filter: apibody.Filter{FanOutID: &fanOut}, Limit: 50})
		must("a fan-out", len(jobs), 50, err)
	}
	foreign, _, err := s.Jobs.ListJobs(t.Context(), apidb.OwnerOf("umbrella"), jobstore.Filter{Filter: apibody.Filter{FanOutID: &fanOut}, Limit: 50})
	must("another owner's fan-out", len(foreign), 0, err)
	dead, _, err := s.Jobs.CountDead(t.Context(), acme, jobstore.Filter{})
	must("dead ones", int(dead), 76, err)
	for _, f := range []apibody.Filter{{All: true}, {Tag: "rare"}, {FanOutID: &fanOut}} {
		op, _, err := s.Operations.InsertOperation(t.Context(), operationstore.NewOperation{
			ID: uuid.Must(uuid.NewV7()), By: "me", Whose: acme, Request: apibody.Operation{Command: jobevent.CommandDelete, Filter: &f},
		})
		if err == nil {
			_, _, err = s.Operations.Operate(t.Context(), op.ID)
		}
		must("operation", 0, 0, err)
	}
	operations, _, err := s.Operations.ListOperations(t.Context(), acme, uuid.Nil, 50)
	must("operations", len(operations), 3, err)
	for name, most := range map[string]float64{
		"JobsNewest": 300, "JobsListed": 51, "JobsOldest": 300,
		"OperationsListOwned": 3, "OperationCommandsKeep": 300, "OperationJobsLock": 300,
	} {
		if len(plans.Seen()[name]) == 0 {
			t.Errorf("%s was not run", name)
		}
		for _, plan := range plans.Seen()[name] {
			plan.Walk(func(n pgtest.Node) {
				rows := n.Loops * (n.Rows + n.Removed)
				if strings.Contains(n.Type, "Seq Scan") || strings.Contains(n.Type, "Bitmap") ||
					strings.HasPrefix(n.Type, "Index") && rows > most {
					t.Errorf("%s visits %.0f rows of %s by %s %s, %.0f are enough", name, rows, n.Relation, n.Type, n.Index, most)
				}
			})
		}
	}
}

// fillOwned gives jobs to an owner and to others.
func fillOwned(t testing.TB, s *fixture, others, own int) {
	t.Helper()
	for _, table := range []string{"jobs", "deliveries", "operations"} {
		if err := s.Try(t, "alter table "+table+" set (autovacuum_enabled = off)"); err != nil {
			t.Fatal(err)
		}
	}
	for _, part := range []struct {
		owner string
		jobs  int
		tag   string
	}{{"umbrella", others / 2, "rare"}, {"acme", own - 1, "often"}, {"acme", 1, "rare"}, {"umbrella", others / 2, "rare"}} {
		for _, sql := range []string{
			`insert into jobs (job_id, owner_id, job_type, queue, payload, spec, trace_id, status,
					version, snapshot, tags, ordering_key, callback_url)
				select uuidv7(), $1, 'X', 'default', '{}', '{"priority":0,"maxRetryCount":3,"timeoutMs":1000}', gen_random_uuid(),
					(array['COMPLETED', 'FAILED', 'PENDING', 'COMPLETED'])[1 + n % 4], 1, '{}', array[$3::text], 'k', 'https://example.org/'
				from generate_series(1, $2::int) n`,
			`insert into deliveries (job_id, version, owner_id, job_status, url, job, snapshot)
				select job_id, 1, owner_id, status, callback_url, '{}', '{}' from jobs
				where status in ('COMPLETED', 'FAILED') and owner_id = $1 and $2::int > 1 and tags = array[$3::text] on conflict do nothing`,
		} {
			if err := s.Try(t, sql, part.owner, part.jobs, part.tag); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Jobs without an owner are in no index of owners.
func TestJobsWithoutAnOwnerPayForNoIndex(t *testing.T) {
	t.Parallel()
	s, _ := watched(t)
	var indexed int
	job := apidbtest.NewJob()
	job.Request.OrderingKey = "k"
	accepted, err := s.Jobs.InsertJobs(t.Context(), []jobstore.NewJob{job})
	if err == nil {
		_, err = s.Pool.Exec(t.Context(), "create extension if not exists pgstattuple")
	}
	if err == nil {
		err = s.Pool.QueryRow(t.Context(), `select count(*) from pg_index join pg_class on pg_class.oid = indexrelid
			where indrelid = 'jobs'::regclass and relname in ('jobs_owned', 'jobs_of_owners_key')
				and (pgstatindex(indexrelid::regclass)).leaf_pages = 0`).Scan(&indexed)
	}
	if err != nil || len(accepted) != 1 || indexed != 2 {
		t.Errorf("%d of two indexes are empty, %v", indexed, err)
	}
}
