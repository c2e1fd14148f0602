package apidb_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// house is a store on a database of its own, and a way round the store.
type house struct {
	*apidb.Store
	url string
}

func open(t *testing.T) *house {
	t.Helper()
	url := pgtest.Database(t, migrations.API)
	store, err := apidb.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	return &house{Store: store, url: url}
}

// exec reaches round the store, for what only time or another program does.
func (h *house) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	h.conn(t, func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, sql, args...)
		return err
	})
}

// try is exec where the database may say no.
func (h *house) try(t *testing.T, sql string, args ...any) (said error) {
	t.Helper()
	h.conn(t, func(ctx context.Context, c *pgx.Conn) error {
		_, said = c.Exec(ctx, sql, args...)
		return nil
	})
	return said
}

// one reads a single value.
func one[T any](t *testing.T, h *house, sql string, args ...any) (value T) {
	t.Helper()
	h.conn(t, func(ctx context.Context, c *pgx.Conn) error { return c.QueryRow(ctx, sql, args...).Scan(&value) })
	return value
}

func (h *house) conn(t *testing.T, use func(context.Context, *pgx.Conn) error) {
	t.Helper()
	ctx := t.Context()
	c, err := pgx.Connect(ctx, h.url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(ctx)
	if err := use(ctx, c); err != nil {
		t.Fatal(err)
	}
}

func newJob() apidb.NewJob {
	return apidb.NewJob{
		JobID: uuid.Must(uuid.NewV7()), TraceID: uuid.New(), Whose: apidb.Everyone,
		Request: jobspec.Request{
			JobType: "SIMULATION", Payload: json.RawMessage(`{"steps":[{"type":"LOG","message":"hi"}]}`),
			MaxRetryCount: 3, Queue: "default", Timeout: 10 * time.Minute,
		},
	}
}

func keyed(key, body string) apidb.NewJob {
	job := newJob()
	hash := sha256.Sum256([]byte(body))
	job.Request.IdempotencyKey, job.RequestHash = key, hash[:]
	return job
}

// accept inserts one job.
func (h *house) accept(t *testing.T, job apidb.NewJob) apidb.Accepted {
	t.Helper()
	accepted, err := h.InsertJobs(t.Context(), []apidb.NewJob{job})
	if err != nil {
		t.Fatal(err)
	}
	return accepted[0]
}

// job reads one back.
func (h *house) job(t *testing.T, id uuid.UUID) apidb.Job {
	t.Helper()
	job, err := h.Job(t.Context(), apidb.Everyone, id)
	if err != nil {
		t.Fatal(err)
	}
	return job
}

func word(id uuid.UUID, version int64, status jobstate.Status, change ...func(*jobevent.Status)) apidb.StatusWord {
	s := jobevent.Status{
		JobID: id, Version: version, Status: string(status), UpdatedAt: time.Now(),
		History: []jobevent.Move{{At: time.Now(), To: string(status), By: "test"}},
	}
	for _, c := range change {
		c(&s)
	}
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return apidb.StatusWord{Status: s, JSON: b}
}

func (h *house) apply(t *testing.T, words ...apidb.StatusWord) int64 {
	t.Helper()
	changed, err := h.ApplyStatuses(t.Context(), words)
	if err != nil {
		t.Fatal(err)
	}
	return changed
}
