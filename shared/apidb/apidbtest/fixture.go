// Package apidbtest holds the fixtures for tests of the API's stores.
package apidbtest

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/apidb/statusstore"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

// Fixture holds the stores of one test database, and runs SQL on it.
type Fixture struct {
	*Stores
	URL  string
	Pool *pgxpool.Pool // set by Pooled and Watched only
	sql  *pgxpool.Pool
}

// New makes a migrated database and opens its stores.
func New(t testing.TB) *Fixture {
	t.Helper()
	return At(t, pgtest.Database(t, migrations.API))
}

// At opens the stores of the database at url.
func At(t testing.TB, url string) *Fixture {
	t.Helper()
	return &Fixture{Stores: Open(t, url), URL: url, sql: pgtest.Pool(t, url)}
}

// Exec runs SQL past the stores, for changes that only time or another program makes.
func (f *Fixture) Exec(t testing.TB, sql string, args ...any) {
	t.Helper()
	if err := f.Try(t, sql, args...); err != nil {
		t.Fatal(err)
	}
}

// Try is Exec for a statement that the database may refuse.
func (f *Fixture) Try(t testing.TB, sql string, args ...any) (err error) {
	t.Helper()
	f.Conn(t, func(ctx context.Context, c *pgx.Conn) error {
		_, err = c.Exec(ctx, sql, args...)
		return nil
	})
	return err
}

// Conn calls use with a connection that nothing else uses meanwhile.
func (f *Fixture) Conn(t testing.TB, use func(context.Context, *pgx.Conn) error) {
	t.Helper()
	ctx := t.Context()
	c, err := f.sql.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Release()
	if err := use(ctx, c.Conn()); err != nil {
		t.Fatal(err)
	}
}

// One reads a single value.
func One[T any](t testing.TB, f interface {
	Conn(testing.TB, func(context.Context, *pgx.Conn) error)
}, sql string, args ...any,
) (value T) {
	t.Helper()
	f.Conn(t, func(ctx context.Context, c *pgx.Conn) error { return c.QueryRow(ctx, sql, args...).Scan(&value) })
	return value
}

// NewJob returns a job that no client has submitted yet.
func NewJob() jobstore.NewJob {
	return jobstore.NewJob{
		JobID: uuid.Must(uuid.NewV7()), TraceID: uuid.New(), Whose: apidb.Everyone,
		Request: jobspec.Request{
			JobType: "SIMULATION", Payload: json.RawMessage(`{"steps":[{"type":"LOG","message":"hi"}]}`),
			Spec: jobevent.Spec{MaxRetryCount: 3, TimeoutMs: (10 * time.Minute).Milliseconds()}, Queue: "default",
		},
	}
}

// Keyed returns a job with an idempotency key and the request body.
func Keyed(key, body string) jobstore.NewJob {
	job := NewJob()
	hash := sha256.Sum256([]byte(body))
	job.Request.IdempotencyKey, job.RequestHash = key, hash[:]
	return job
}

// Accept inserts one job.
func (f *Fixture) Accept(t testing.TB, job jobstore.NewJob) jobstore.Accepted {
	t.Helper()
	accepted, err := f.Jobs.InsertJobs(t.Context(), []jobstore.NewJob{job})
	if err != nil {
		t.Fatal(err)
	}
	return accepted[0]
}

// ReadJob reads a job.
func (f *Fixture) ReadJob(t testing.TB, id uuid.UUID) jobstore.Job {
	t.Helper()
	job, err := f.Jobs.Job(t.Context(), apidb.Everyone, id)
	if err != nil {
		t.Fatal(err)
	}
	return job
}

// Status returns a status as the scheduler publishes it.
func Status(
	id uuid.UUID, version int64, status jobstate.Status, change ...func(*jobevent.Status),
) statusstore.PublishedStatus {
	s := jobevent.Status{
		JobID: id, Version: version, Status: string(status), UpdatedAt: time.Now(),
		History: []jobevent.Transition{{At: time.Now(), To: string(status), By: "test"}},
	}
	for _, c := range change {
		c(&s)
	}
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return statusstore.PublishedStatus{Status: s, JSON: b}
}

// OfAttempt sets the attempt of a status.
func OfAttempt(n int) func(*jobevent.Status) { return func(s *jobevent.Status) { s.Attempt = n } }

// Answered makes a status answer a command.
func Answered(number int, applied bool) func(*jobevent.Status) {
	return func(s *jobevent.Status) {
		s.LastCommand = &jobevent.CommandResult{Number: number, Command: "cancel", Applied: applied}
	}
}

// Apply applies statuses, and returns how many rows changed.
func (f *Fixture) Apply(t testing.TB, statuses ...statusstore.PublishedStatus) int64 {
	t.Helper()
	changed, err := f.Statuses.ApplyStatuses(t.Context(), statuses)
	if err != nil {
		t.Fatal(err)
	}
	return changed
}

// Pooled makes a fixture with a pool for statements that belong to no store.
func Pooled(t testing.TB) *Fixture {
	t.Helper()
	return pooled(t)
}

// Watched is Pooled with a pool that records how the server plans its statements, which makes each several times as
// expensive.
func Watched(t testing.TB) (*Fixture, *pgtest.Plans) {
	t.Helper()
	plans := &pgtest.Plans{}
	return pooled(t, plans.Watch()), plans
}

func pooled(t testing.TB, options ...pgpool.Option) *Fixture {
	t.Helper()
	url := pgtest.Database(t, migrations.API)
	pool, err := pgpool.Open(t.Context(), url, append(options, pgpool.IndexOnly(), pgpool.PlannedOnce())...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return &Fixture{Stores: Of(apidb.OverPool(pool)), URL: url, Pool: pool, sql: pgtest.Pool(t, url)}
}
