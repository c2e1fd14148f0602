package jobstore_test

import (
	"context"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

// tracer records the names of all statements.
type tracer struct {
	mu         sync.Mutex
	statements []string
}

var statementName = regexp.MustCompile(`-- name: (\w+)`)

func (l *tracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	if name := statementName.FindStringSubmatch(data.SQL); name != nil {
		l.statements = append(l.statements, name[1])
	} else {
		l.statements = append(l.statements, data.SQL)
	}
	return ctx
}

func (l *tracer) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// take returns the statements since the last call, except for reads of controls and workers, which happen every one or
// two seconds.
func (l *tracer) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	statements := slices.DeleteFunc(l.statements, func(name string) bool { return name == "ControlsAll" || name == "WorkersAll" })
	l.statements = nil
	return statements
}

// A job without rare fields costs no statements for them.
func TestEachKindOfSubmitHasItsStatements(t *testing.T) {
	t.Parallel()
	traced := &tracer{}
	pool, err := pgpool.Open(t.Context(), pgtest.Database(t, migrations.API), pgpool.IndexOnly(), pgpool.PlannedOnce(),
		func(cfg *pgxpool.Config) { cfg.ConnConfig.Tracer = traced })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	s := apidbtest.Of(apidb.OverPool(pool))
	if err := s.Ping(t.Context()); err != nil { // first, so that the statements that set up a connection are not counted
		t.Fatal(err)
	}
	traced.take()
	asked := func(changes ...func(*jobstore.NewJob)) jobstore.NewJob {
		job := apidbtest.NewJob()
		for _, change := range changes {
			change(&job)
		}
		return job
	}
	key := func(job *jobstore.NewJob) {
		job.Request.IdempotencyKey, job.RequestHash = job.JobID.String(), []byte("x")
	}
	event := func(job *jobstore.NewJob) { job.EventSource, job.EventID = "/test", job.JobID.String() }
	urgent := func(job *jobstore.NewJob) { job.Request.Priority = 9 }
	expires := func(job *jobstore.NewJob) {
		at := time.Now().Add(time.Hour)
		job.Request.ExpiresAt = &at
	}
	again := func(job *jobstore.NewJob) { job.Request.RunAgainOf = uuid.New() }
	inOrder := func(job *jobstore.NewJob) { job.Request.OrderingKey = "k" }
	first := asked()
	tied := func(job *jobstore.NewJob) { job.Request.After = []uuid.UUID{first.JobID} }
	for _, c := range []struct {
		name string
		jobs []jobstore.NewJob
		want []string
	}{
		{"a plain job", []jobstore.NewJob{first}, []string{"JobInsertUniform"}},
		{"a plain batch", []jobstore.NewJob{asked(), asked()}, []string{"JobInsertUniform"}},
		{"a plain batch of different jobs", []jobstore.NewJob{asked(), asked(urgent)}, []string{"begin", "JobInsertMany", "commit"}},
		{"a job with a key", []jobstore.NewJob{asked(key)}, []string{"JobInsertMany"}},
		{"an event", []jobstore.NewJob{asked(event)}, []string{"JobInsertMany"}},
		{"a batch with keys", []jobstore.NewJob{asked(key), asked(key)}, []string{"begin", "JobInsertMany", "commit"}},
		{"a job that expires", []jobstore.NewJob{asked(expires)}, []string{"JobInsertMany"}},
		{"a batch that expires", []jobstore.NewJob{asked(expires), asked()}, []string{"begin", "JobInsertMany", "commit"}},
		{"a job that does another once more", []jobstore.NewJob{asked(again)}, []string{"JobInsertMany"}},
		{"a job in an order", []jobstore.NewJob{asked(inOrder)},
			[]string{"begin", "OrdersLock", "OrderPlaces", "JobInsertMany", "commit"}},
		{"a job in an order, with a key", []jobstore.NewJob{asked(inOrder, key)},
			[]string{"begin", "JobsInTheWay", "OrdersLock", "OrderPlaces", "JobInsertMany", "commit"}},
		{"a job after another", []jobstore.NewJob{asked(tied)}, []string{"begin", "JobsMissing", "JobInsertMany", "commit"}},
	} {
		accepted, err := s.Jobs.InsertJobs(t.Context(), c.jobs)
		if statements := traced.take(); err != nil || len(accepted) != len(c.jobs) || !slices.Equal(statements, c.want) {
			t.Errorf("%s: %v, want %v; %v", c.name, statements, c.want, err)
		}
	}
	if _, err := s.Jobs.Job(t.Context(), apidb.Everyone, first.JobID); err != nil || !slices.Equal(traced.take(), []string{"JobByID"}) {
		t.Errorf("get a plain job: %v", err)
	}
	if _, _, err := s.Jobs.ListJobs(t.Context(), apidb.Everyone, jobstore.Filter{Limit: 1}); err != nil || !slices.Equal(traced.take(), []string{"JobsNewest", "JobsListed", "JobsBlocks"}) {
		t.Errorf("a list of jobs that are tied: %v", err)
	}
}
