package jobstore_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/apidb/statstore"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

var statuses = []jobstate.Status{
	jobstate.Scheduled, jobstate.Pending, jobstate.Queued, jobstate.Running, jobstate.Waiting, jobstate.Retrying,
	jobstate.Completed, jobstate.Failed, jobstate.Cancelled,
}

func (h *fixture) put(t *testing.T, status jobstate.Status, version int) {
	t.Helper()
	h.Exec(t, `insert into jobs (job_id, job_type, queue, payload, spec, trace_id, status, version, snapshot)
		select uuidv7(), 'X', 'default', '{}', '{"priority":0,"maxRetryCount":3,"timeoutMs":1000}', gen_random_uuid(), $1, $2::int, case when $2 > 0 then '{}' end`, string(status), version)
}

func TestAListOfAStatusIsThatPartOfTheListOfAll(t *testing.T) {
	t.Parallel()
	h := open(t)
	for round := range 4 {
		for _, status := range statuses {
			h.put(t, status, round+1)
			if status == jobstate.Scheduled || status == jobstate.Pending {
				h.put(t, status, 0)
			}
		}
	}
	list := func(f jobstore.Filter) []jobstore.Job {
		jobs, next, err := h.Jobs.ListJobs(t.Context(), apidb.Everyone, f)
		if err != nil || (next != uuid.Nil) != (len(jobs) == f.Limit && f.Limit < 8) {
			t.Fatalf("%+v: %d jobs, next: %v, %v", f, len(jobs), next, err)
		}
		return jobs
	}
	all, _, err := h.Jobs.ListJobs(t.Context(), apidb.Everyone, jobstore.Filter{Limit: 100})
	if err != nil || len(all) != 4*(len(statuses)+2) {
		t.Fatal(len(all), err)
	}
	for _, status := range statuses {
		var want []uuid.UUID
		for _, job := range all {
			if job.Status == status {
				want = append(want, job.JobID)
			}
		}
		var got []uuid.UUID
		for _, job := range list(jobstore.Filter{Filter: apibody.Filter{Status: []jobstate.Status{status}}, Limit: 100}) {
			got = append(got, job.JobID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", status, got, want)
		}
		if page := list(jobstore.Filter{Filter: apibody.Filter{Status: []jobstate.Status{status}}, Before: want[0], Limit: 2}); page[0].JobID != want[1] || page[1].JobID != want[2] {
			t.Errorf("%s: the page after the first job has %v", status, page)
		}
		if none := list(jobstore.Filter{Filter: apibody.Filter{Status: []jobstate.Status{status}, Queue: "other"}, Limit: 100}); len(none) != 0 {
			t.Errorf("%s: in another queue are %v", status, none)
		}
	}
}

func TestFiguresCountWhatWaitsAndWhatHasFailed(t *testing.T) {
	t.Parallel()
	h := open(t)
	for _, status := range statuses {
		h.put(t, status, 1)
	}
	h.put(t, jobstate.Pending, 0)
	h.put(t, jobstate.Scheduled, 0)
	got, err := h.Stats.Health(t.Context())
	if want := (statstore.Health{PendingJobs: 5, DeadJobs: 1}); err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestARowWithHalfOfAPairIsRefused(t *testing.T) {
	t.Parallel()
	h := open(t)
	job := h.Accept(t, apidbtest.Keyed("key", "body"))
	for _, set := range []string{
		"version = 1", "snapshot = '{}'", "idempotency_key = null", "request_hash = null", "event_id = '1'", "event_source = '/x'",
	} {
		err := h.Try(t, fmt.Sprintf("update jobs set %s where job_id = $1", set), job.JobID)
		if refused := new(pgconn.PgError); !errors.As(err, &refused) || refused.ConstraintName != "jobs_pairs" {
			t.Errorf("%s: %v", set, err)
		}
	}
	h.Exec(t, "update jobs set version = 1, snapshot = '{}', status = 'WAITING', attempt = 3 where job_id = $1", job.JobID)
}
