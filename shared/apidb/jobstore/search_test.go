package jobstore_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

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

// failed accepts a job of an owner with a key and a tag, and fails it with a message.
func failed(t *testing.T, s *fixture, owner, key, tag, code, message string) uuid.UUID {
	t.Helper()
	job := apidbtest.NewJob()
	job.JobID, job.Request.OwnerID, job.Request.Tags = s.NewID(), owner, []string{tag}
	if key != "" {
		job.Request.IdempotencyKey, job.RequestHash = key, []byte("hash")
	}
	status := jobevent.Status{
		JobID: job.JobID, Version: 1, Status: "FAILED", UpdatedAt: time.Now(), Output: json.RawMessage(`{"text": "in the output"}`),
		LastError: &jobevent.Error{ErrorCode: code, Message: message}, History: []jobevent.Transition{{To: "FAILED", Reason: "in the history"}},
	}
	raw, err := json.Marshal(status)
	if err == nil {
		_, err = s.Jobs.InsertJobs(t.Context(), []jobstore.NewJob{job})
	}
	if err == nil {
		_, err = s.Statuses.ApplyStatuses(t.Context(), []statusstore.PublishedStatus{{JSON: raw, Status: status}})
	}
	if err != nil {
		t.Fatal(err)
	}
	return job.JobID
}

// search reads all pages.
func (s *fixture) search(t *testing.T, owner apidb.Owner, f jobstore.Filter) (found []uuid.UUID, pages int) {
	t.Helper()
	f.Limit = 2
	for pages = 1; ; pages++ {
		jobs, next, err := s.Jobs.ListJobs(t.Context(), owner, f)
		if err != nil {
			t.Fatal(err)
		}
		for _, job := range jobs {
			found = append(found, job.JobID)
		}
		if f.Before = next; next == uuid.Nil {
			return found, pages
		}
	}
}

func TestASearchFindsWhatHasTheText(t *testing.T) {
	t.Parallel()
	s, _ := watched(t)
	if err := s.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	key := uuid.New()
	refused := failed(t, s, "acme", "order-17", "billing", "NET", `dial: Connection "Refused" \ ü`)
	other := failed(t, s, "acme", key.String(), "mail", "NET", "too late\nat all")
	named := failed(t, s, "acme", "NET-2", "NET", "billing", "nothing")
	theirs := failed(t, s, "umbrella", "order-17", "billing", "NET", "connection refused")
	sealed := failed(t, s, "acme", "", "mail", "SECRET", jobevent.SealedPrefix+"connection")
	foreign := uuid.New()
	if _, err := s.Pool.Exec(t.Context(), "update jobs set trace_id = $1 where job_id = any ($2)", foreign, []uuid.UUID{refused, theirs}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		search string
		want   []uuid.UUID // jobs of acme, newest first
	}{
		{"order-17", []uuid.UUID{refused}},
		{"NET", []uuid.UUID{other, refused}}, // not the job with this tag: error codes are searched first
		{"billing", []uuid.UUID{named}},
		{"mail", []uuid.UUID{sealed, other}},
		{"connection \"refused\" \\", []uuid.UUID{refused}},
		{"LATE\nAT", []uuid.UUID{other}},
		{"in the output", nil},
		{"in the history", nil},
		{"order-1", nil},
		{"BILL", []uuid.UUID{refused}}, // a part of a tag
		{"%", nil},
		{"nothing", []uuid.UUID{named}},
		{refused.String(), []uuid.UUID{refused}},
		{foreign.String(), []uuid.UUID{refused}},
		{key.String(), []uuid.UUID{other}},
		{theirs.String(), nil},
		{uuid.NewString(), nil},
	} {
		if got, _ := s.search(t, apidb.OwnerOf("acme"), jobstore.Filter{Filter: apibody.Filter{Search: c.search}}); !slices.Equal(got, c.want) {
			t.Errorf("%q finds %v, want %v", c.search, got, c.want)
		}
		got := operated(t, s, apidb.OwnerOf("acme"), apibody.Filter{Search: c.search})
		slices.Reverse(got)
		if !slices.Equal(got, c.want) {
			t.Errorf("an operation on %q goes to %v, want %v", c.search, got, c.want)
		}
	}
	for _, c := range []struct {
		name   string
		filter jobstore.Filter
		want   []uuid.UUID
	}{
		{"all owners'", jobstore.Filter{Filter: apibody.Filter{Search: "order-17"}}, []uuid.UUID{theirs, refused}},
		{"one owner's of all", jobstore.Filter{Filter: apibody.Filter{Search: "order-17", OwnerID: "acme"}}, []uuid.UUID{refused}},
		{"all owners' of a trace", jobstore.Filter{Filter: apibody.Filter{Search: foreign.String()}}, []uuid.UUID{theirs, refused}},
		{"a message of a trace", jobstore.Filter{Filter: apibody.Filter{Search: "connection", TraceID: &foreign}}, []uuid.UUID{theirs, refused}},
		{"a message of a code", jobstore.Filter{Filter: apibody.Filter{Search: "late", ErrorCode: "NET"}}, []uuid.UUID{other}},
		{"a message of a state", jobstore.Filter{Filter: apibody.Filter{Search: "refused", Status: []jobstate.Status{jobstate.Failed}}}, []uuid.UUID{theirs, refused}},
		{"a message of another state", jobstore.Filter{Filter: apibody.Filter{Search: "refused", Status: []jobstate.Status{jobstate.Completed}}}, nil},
		{"a key of another tag", jobstore.Filter{Filter: apibody.Filter{Search: "order-17", Tag: "mail"}}, nil},
	} {
		if got, _ := s.search(t, apidb.Everyone, c.filter); !slices.Equal(got, c.want) {
			t.Errorf("%s: found %v, want %v", c.name, got, c.want)
		}
	}
	if n, known, err := s.Jobs.CountDead(t.Context(), apidb.Everyone, jobstore.Filter{Filter: apibody.Filter{Search: "refused"}}); n != 2 || !known || err != nil {
		t.Errorf("%d dead jobs are counted, %t, %v", n, known, err)
	}
	if got, _ := s.search(t, apidb.OwnerOf(""), jobstore.Filter{Filter: apibody.Filter{Search: "order-17"}}); got != nil {
		t.Errorf("nobody's search finds %v", got)
	}
}

// operated returns the jobs that an operation on all matching failed jobs handles, oldest first.
func operated(t *testing.T, s *fixture, owner apidb.Owner, f apibody.Filter) (ids []uuid.UUID) {
	t.Helper()
	op, _, err := s.Operations.InsertOperation(t.Context(), operationstore.NewOperation{
		ID: s.NewID(), By: "me", Whose: owner, Request: apibody.Operation{Command: jobevent.CommandRetry, Filter: &f},
	})
	if err != nil {
		t.Fatal(err)
	}
	return operate(t, s, op.ID)
}

// operate does a piece of an operation as bulk does, with the rights of bulk, and then removes its commands.
func operate(t *testing.T, s *fixture, id uuid.UUID) (ids []uuid.UUID) {
	t.Helper()
	as := s.Pool.Config()
	as.AfterConnect = func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, "set role jobweaver_bulk")
		return err
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), as)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	commands, _, err := apidbtest.Of(apidb.OverPool(pool)).Operations.Operate(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range commands {
		ids = append(ids, command.JobID)
	}
	if _, err := s.Pool.Exec(t.Context(), "delete from commands"); err != nil {
		t.Fatal(err)
	}
	return ids
}

// A retry clears the error code of a job. A text that the search took for a code stays a code: the operation does not
// look for it in the messages of other jobs.
func TestAnOperationSearchesAsWasDecidedWhenItWasAccepted(t *testing.T) {
	t.Parallel()
	s, _ := watched(t)
	code := failed(t, s, "acme", "", "mail", "NET", "no route")
	failed(t, s, "acme", "", "mail", "OTHER", "the NET is down")
	op, _, err := s.Operations.InsertOperation(t.Context(), operationstore.NewOperation{
		ID: s.NewID(), By: "me", Whose: apidb.Everyone,
		Request: apibody.Operation{Command: jobevent.CommandRetry, Filter: &apibody.Filter{Search: "NET"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Pool.Exec(t.Context(), "update jobs set error_code = 'ELSE' where job_id = $1", code); err != nil {
		t.Fatal(err)
	}
	if got := operate(t, s, op.ID); len(got) > 0 {
		t.Errorf("it goes to %v", got)
	}
}

// A search by ids and names visits only the jobs that it finds. A search in messages visits at most a fixed number of
// jobs for each page, however many there are.
func TestASearchLooksAtFewJobs(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("one goroutine asks PostgreSQL: there is nothing to race")
	}
	s, plans := watched(t)
	if err := s.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	rare := failed(t, s, "acme", "order-17", "rare", "RARE", "a rare message")
	foreign := uuid.New()
	if _, err := s.Pool.Exec(t.Context(), "update jobs set trace_id = $1 where job_id = $2", foreign, rare); err != nil {
		t.Fatal(err)
	}
	fillOwned(t, s, 12_000, 2)
	if _, err := s.Pool.Exec(t.Context(), `update jobs set error_code = 'COMMON', idempotency_key = job_id::text, request_hash = '',
		snapshot = '{"lastError":{"errorCode":"COMMON","message":"as ever"}}' where job_id <> $1`, rare); err != nil {
		t.Fatal(err)
	}
	for whose, owner := range map[string]apidb.Owner{"all owners'": apidb.Everyone, "acme's": apidb.OwnerOf("acme")} {
		for _, text := range []string{"order-17", "RARE", foreign.String()} {
			plans.Forget()
			if got, pages := s.search(t, owner, jobstore.Filter{Filter: apibody.Filter{Search: text}}); !slices.Equal(got, []uuid.UUID{rare}) || pages != 1 {
				t.Errorf("%s %s: %v on %d pages", whose, text, got, pages)
			}
			visitsFew(t, fmt.Sprintf("%s %s", whose, text), plans)
		}
	}
	plans.Forget()
	got, pages := s.search(t, apidb.Everyone, jobstore.Filter{Filter: apibody.Filter{Search: "a RARE message"}})
	if !slices.Equal(got, []uuid.UUID{rare}) || pages != 1+12_002/jobstore.MaxSearched {
		t.Errorf("a message is found as %v on %d pages", got, pages)
	}
	for _, plan := range plans.Seen()["JobsNewest"] {
		visited := 0.0
		plan.Walk(func(n pgtest.Node) {
			if n.Relation == "jobs" {
				visited += n.Loops * (n.Rows + n.Removed)
			}
		})
		if visited > 2*(jobstore.MaxSearched+1) { // each job twice: by its id, and for its message
			t.Errorf("a page visits %.0f jobs", visited)
		}
	}
}
