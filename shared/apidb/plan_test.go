package apidb_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/apidb/commandstore"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/apidb/operationstore"
	"github.com/jobweaver/jobweaver/shared/apidb/statusstore"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

// watched is a fixture that records how the server plans its statements.
func watched(t *testing.T) (*fixture, *pgtest.Plans) {
	t.Helper()
	f, plans := apidbtest.Watched(t)
	return &fixture{f}, plans
}

// At 200,000 jobs without statistics the statements that walk over old or many jobs visit no more than their page, by
// an index.
func TestWalksVisitTheirPageOnly(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("one goroutine asks PostgreSQL: there is nothing to race")
	}
	for _, statistics := range []string{"none", "of empty tables"} {
		t.Run("statistics "+statistics, func(t *testing.T) {
			t.Parallel()
			s, plans := watched(t)
			fillTables(t, s.Pool)
			if statistics == "of empty tables" {
				pgtest.LookEmpty(t, s.Pool)
				pgtest.CheckSearches(t, s.Pool, "internal/gen", map[string]string{
					"CallbacksAnswer": "callbacks_unanswered", "DeliveryNext": "deliveries_due", "HeldNext": "jobs_held",
					"HeldRelease": "jobs_unheld", "FanOutOrphans": "jobs_elements_live", "RestoredUntil": "jobs_pkey",
				}, "jobs", "commands", "callbacks", "attempt_logs", "deliveries", "merged_submits", "schedule_ticks",
					"operation_answers", "operation_skips", "batch_deletions")
			}
			plans.Forget()
			s.walkAll(t)
			checkPlans(t, plans.Seen())
		})
	}
}

func fillTables(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	for _, sql := range []string{
		"alter table jobs set (autovacuum_enabled = off)",
		"alter table commands set (autovacuum_enabled = off)",
		"alter table attempt_logs set (autovacuum_enabled = off)",
		`insert into jobs (job_id, job_type, queue, payload, spec, trace_id, status, version, snapshot,
				created_at, updated_at)
			select uuidv7(-interval '9 days' + n * interval '1 s'), 'X', 'default', '{}', '{"priority":0,"maxRetryCount":3,"timeoutMs":1000}', gen_random_uuid(),
				(array['PENDING', 'COMPLETED', 'FAILED', 'CANCELLED', 'RETRYING', 'RUNNING', 'SCHEDULED', 'WAITING'])[1 + n % 8], 1, '{}',
				now() - interval '9 days' + n * interval '1 s', now() - interval '9 days' + n * interval '1 s'
			from generate_series(1, 200000) n`,
		`insert into commands (job_id, number, command, by_whom)
			select job_id, 1, 'cancel', 'me' from jobs where status = 'RUNNING' limit 20000`,
		"alter table callbacks set (autovacuum_enabled = off)",
		`insert into callbacks (job_id, attempt, outcome, body_hash, answered_at)
			select job_id, 1, 'completed', '', now() from jobs where status <> 'PENDING'`,
		`insert into callbacks (job_id, attempt, outcome, body_hash, received_at)
			select job_id, 2, 'completed', '', updated_at from jobs where status = 'WAITING' order by job_id desc limit 50`,
		"insert into attempt_logs (job_id, attempt, first_line, lines) select job_id, 1, 0, '[]' from jobs where status <> 'PENDING'",
	} {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
}

// walkAll makes each walk do one page.
func (s *fixture) walkAll(t *testing.T) {
	t.Helper()
	now, day := time.Now(), 24*time.Hour
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	walked, err := s.Statuses.ExpireJobs(t.Context(), now, statusstore.Ages{Completed: 8 * day, Failed: 30 * day}, uuid.Nil, 1000)
	must(err)
	if walked.Gone != 125 || !walked.More {
		t.Errorf("walked %+v", walked)
	}
	for _, request := range []apibody.Operation{
		{Command: jobevent.CommandRetry, Filter: &apibody.Filter{All: true}},
		{Command: jobevent.CommandDelete, Filter: &apibody.Filter{Tag: "none"}},
		{Command: jobevent.CommandCancel, Filter: &apibody.Filter{FanOutID: new(uuid.New())}},
		{Command: jobevent.CommandCancel, JobIDs: s.some(t, "true")},
	} {
		op, _, err := s.Operations.InsertOperation(t.Context(), operationstore.NewOperation{ID: uuid.Must(uuid.NewV7()), Request: request, By: "me", Whose: apidb.Everyone})
		must(err)
		commands, _, err := s.Operations.Operate(t.Context(), op.ID)
		must(err)
		s.answerAll(t, commands)
		_, _, err = s.Operations.Operate(t.Context(), op.ID)
		must(err)
	}
	var gone []statusstore.Gone
	for _, id := range s.some(t, "status = 'COMPLETED'") {
		gone = append(gone, statusstore.Gone{JobID: id, Version: 9})
	}
	_, err = s.Statuses.ForgetJobs(t.Context(), gone)
	must(err)
	_, _, err = s.Jobs.ListJobs(t.Context(), apidb.Everyone, jobstore.Filter{Filter: apibody.Filter{Status: []jobstate.Status{jobstate.Failed}}, Skip: 500, Limit: 50})
	must(err)
	_, _, err = s.Jobs.ListJobs(t.Context(), apidb.Everyone, jobstore.Filter{Limit: 50})
	must(err)
	_, _, err = s.Jobs.ListJobs(t.Context(), apidb.Everyone, jobstore.Filter{Filter: apibody.Filter{OrderingKey: "none"}, Limit: 50})
	must(err)
	_, _, err = s.Jobs.ListJobs(t.Context(), apidb.Everyone, jobstore.Filter{Filter: apibody.Filter{FanOutID: new(uuid.New())}, Limit: 50})
	must(err)
	_, err = s.Jobs.Ended(t.Context(), s.some(t, "true"))
	must(err)
	must(s.Operations.ForgetOperations(t.Context(), day))
}

func (s *fixture) some(t *testing.T, which string) (ids []uuid.UUID) {
	t.Helper()
	rows, err := s.Pool.Query(t.Context(), "select job_id from jobs where "+which+" order by job_id desc limit 600")
	if err == nil {
		ids, err = pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	}
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

func (s *fixture) answerAll(t *testing.T, commands []commandstore.Command) {
	t.Helper()
	var words []statusstore.PublishedStatus
	for i, c := range commands {
		words = append(words, statusstore.PublishedStatus{JSON: []byte(`{}`), Status: jobevent.Status{
			JobID: c.JobID, Version: 5, Status: "PENDING", UpdatedAt: time.Now(),
			LastCommand: &jobevent.CommandResult{Number: c.Number, Command: c.Command, Applied: i%2 == 0},
		}})
	}
	if _, err := s.Statuses.ApplyStatuses(context.WithoutCancel(t.Context()), words); err != nil {
		t.Fatal(err)
	}
}

// operationWindow and operationPage are the bounds of operationstore.
const operationWindow, operationPage = 2_000, 500

func checkPlans(t *testing.T, seen map[string][]pgtest.Node) {
	t.Helper()
	for name, most := range map[string]float64{
		"JobsExpire": 1_200, "JobsOldest": 2 * operationWindow, // on two shelves, see below
		"OperationJobsLock": operationPage, "OperationCommandsKeep": operationPage, "CommandsOfJobs": operationPage,
		"OperationUnanswered": operationstore.MaxUnanswered, "OperationAnswersTake": operationPage, "OperationListed": 1, "CommandsAnswered": operationPage,
		"CallbacksInTheWay": operationPage,
		"JobsDelete":        700, "JobsNewest": 551, "JobsListed": 51, "JobsEnded": 600, "OperationsForget": 4,
	} {
		if len(seen[name]) == 0 {
			t.Errorf("%s was not run", name)
		}
		for _, plan := range seen[name] {
			plan.Walk(func(n pgtest.Node) {
				rows := n.Loops * (n.Rows + n.Removed)
				if strings.Contains(n.Type, "Seq Scan") || strings.Contains(n.Type, "Bitmap") {
					t.Errorf("%s reads all of %s", name, n.Relation)
				}
				most := most
				if name == "JobsOldest" && n.Index == "jobs_pkey" {
					most = operationWindow
				}
				if slices.Contains([]string{"Index Scan", "Index Only Scan"}, n.Type) && rows > most {
					t.Errorf("%s visits %.0f rows of %s by %s, %.0f are enough", name, rows, n.Relation, n.Index, most)
				}
			})
		}
	}
}
