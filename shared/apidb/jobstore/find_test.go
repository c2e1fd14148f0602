package jobstore_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/apidb/operationstore"
	"github.com/jobweaver/jobweaver/shared/apidb/statusstore"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

// bury inserts a FAILED job of each owner among many others, all with the same trace id, error code and key.
func bury(t *testing.T, s *fixture, traceID uuid.UUID, owners ...string) (ids []uuid.UUID) {
	t.Helper()
	for _, owner := range owners {
		job := apidbtest.NewJob()
		job.JobID, job.TraceID, job.RequestHash = s.NewID(), traceID, []byte("hash")
		job.Request.OwnerID, job.Request.IdempotencyKey = owner, "order-17"
		_, err := s.Jobs.InsertJobs(t.Context(), []jobstore.NewJob{job})
		if err == nil {
			_, err = s.Statuses.ApplyStatuses(t.Context(), []statusstore.PublishedStatus{{JSON: []byte(`{}`), Status: jobevent.Status{
				JobID: job.JobID, Version: 1, Status: "FAILED", UpdatedAt: time.Now(), LastError: &jobevent.Error{ErrorCode: "RARE"},
			}}})
		}
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, job.JobID)
	}
	return ids
}

// A search finds a job among many by its trace, error code or key without visiting the others, and only for its owner.
func TestAJobIsFoundByWhatIsKnownOfIt(t *testing.T) {
	t.Parallel()
	s, plans := watched(t)
	fillOwned(t, s, 40_000, 2)
	if _, err := s.Pool.Exec(t.Context(), `update jobs set idempotency_key = job_id::text, request_hash = ''`); err != nil {
		t.Fatal(err)
	}
	if err := s.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	foreign := uuid.New()
	for what, traceID := range map[string]uuid.UUID{"a client's": foreign, "the gateway's": s.NewID()} {
		if _, err := s.Pool.Exec(t.Context(), "delete from jobs where error_code = 'RARE'"); err != nil {
			t.Fatal(err)
		}
		ids := bury(t, s, traceID, "acme", "umbrella")
		for by, filter := range map[string]jobstore.Filter{
			"trace id":        {Filter: apibody.Filter{TraceID: &traceID}},
			"error code":      {Filter: apibody.Filter{ErrorCode: "RARE"}},
			"idempotency key": {Filter: apibody.Filter{IdempotencyKey: "order-17"}},
			"all of them":     {Filter: apibody.Filter{TraceID: &traceID, ErrorCode: "RARE", IdempotencyKey: "order-17", Status: []jobstate.Status{jobstate.Failed}}},
		} {
			for whose, c := range map[string]struct {
				owner apidb.Owner
				only  string
				want  []uuid.UUID
			}{
				"all owners'":                 {apidb.Everyone, "", []uuid.UUID{ids[1], ids[0]}},
				"all owners', only acme's":    {apidb.Everyone, "acme", ids[:1]},
				"acme's":                      {apidb.OwnerOf("acme"), "", ids[:1]},
				"acme's, only acme's":         {apidb.OwnerOf("acme"), "acme", ids[:1]},
				"acme's, only umbrella's":     {apidb.OwnerOf("acme"), "umbrella", nil},
				"umbrella's":                  {apidb.OwnerOf("umbrella"), "", ids[1:]},
				"another's":                   {apidb.OwnerOf("another"), "", nil},
				"nobody's":                    {apidb.OwnerOf(""), "", nil},
				"all owners', only another's": {apidb.Everyone, "another", nil},
			} {
				plans.Forget()
				name := fmt.Sprintf("%s trace, by %s, %s", what, by, whose)
				filter.OwnerID, filter.Limit = c.only, 50
				jobs, next, err := s.Jobs.ListJobs(t.Context(), c.owner, filter)
				var got []uuid.UUID
				for _, job := range jobs {
					got = append(got, job.JobID)
				}
				if err != nil || next != uuid.Nil || !slices.Equal(got, c.want) {
					t.Errorf("%s: got %v, %v, %v, want %v", name, got, next, err, c.want)
				}
				visitsFew(t, name, plans)
			}
		}
	}
}

func visitsFew(t *testing.T, name string, plans *pgtest.Plans) {
	t.Helper()
	for statement, all := range plans.Seen() {
		for _, plan := range all {
			plan.Walk(func(n pgtest.Node) {
				if rows := n.Loops * (n.Rows + n.Removed); n.Relation == "jobs" && (rows > 2 || n.Hit+n.Read > 40) {
					t.Errorf("%s: %s visits %.0f jobs in %d blocks by %s %s", name, statement, rows, n.Hit+n.Read, n.Type, n.Index)
				}
			})
		}
	}
}

func TestAListOfSeveralStatesHasTheJobsOfEach(t *testing.T) {
	t.Parallel()
	s, _ := watched(t)
	fillOwned(t, s, 100, 100)
	for whose, owner := range map[string]apidb.Owner{"all owners'": apidb.Everyone, "acme's": apidb.OwnerOf("acme")} {
		for _, statuses := range [][]jobstate.Status{
			{jobstate.Failed, jobstate.Pending}, {jobstate.Failed, jobstate.Failed}, {jobstate.Completed, jobstate.Failed},
			{jobstate.Completed, jobstate.Failed, jobstate.Pending, jobstate.Running},
		} {
			var want, got []uuid.UUID
			for f := (jobstore.Filter{Limit: 7}); ; {
				jobs, next, err := s.Jobs.ListJobs(t.Context(), owner, f)
				if err != nil {
					t.Fatal(err)
				}
				for _, job := range jobs {
					if slices.Contains(statuses, job.Status) {
						want = append(want, job.JobID)
					}
				}
				if f.Before = next; next == uuid.Nil {
					break
				}
			}
			for f := (jobstore.Filter{Filter: apibody.Filter{Status: statuses}, Limit: 7}); ; {
				jobs, next, err := s.Jobs.ListJobs(t.Context(), owner, f)
				if err != nil {
					t.Fatal(err)
				}
				for _, job := range jobs {
					got = append(got, job.JobID)
				}
				if f.Before = next; next == uuid.Nil {
					break
				}
			}
			if len(want) < 25 || !slices.Equal(got, want) {
				t.Errorf("%s %v: %d jobs, want %d", whose, statuses, len(got), len(want))
			}
		}
	}
}

// An operation handles the jobs of a trace or an error code, and no job of another owner.
func TestAnOperationFindsJobsByTraceErrorCodeAndKey(t *testing.T) {
	t.Parallel()
	s, _ := watched(t)
	fillOwned(t, s, 100, 100)
	traceID := uuid.New()
	ids := bury(t, s, traceID, "acme", "umbrella")
	for what, filter := range map[string]apibody.Filter{
		"trace id": {TraceID: &traceID}, "error code": {ErrorCode: "RARE"}, "key": {IdempotencyKey: "order-17"},
		"code of all states": {ErrorCode: "RARE", Status: jobstate.All()},
	} {
		for whose, c := range map[string]struct {
			owner apidb.Owner
			want  []uuid.UUID
		}{"all owners'": {apidb.Everyone, ids}, "acme's": {apidb.OwnerOf("acme"), ids[:1]}, "another's": {apidb.OwnerOf("another"), nil}} {
			op, _, err := s.Operations.InsertOperation(t.Context(), operationstore.NewOperation{
				ID: s.NewID(), By: "me", Whose: c.owner, Request: apibody.Operation{Command: jobevent.CommandRetry, Filter: &filter},
			})
			if err != nil {
				t.Fatal(err)
			}
			commands, _, err := s.Operations.Operate(t.Context(), op.ID)
			var got []uuid.UUID
			for _, command := range commands {
				got = append(got, command.JobID)
			}
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("%s %s: commands for %v, %v, want %v", whose, what, got, err, c.want)
			}
			if _, err := s.Pool.Exec(t.Context(), "delete from commands"); err != nil {
				t.Fatal(err)
			}
		}
	}
}
