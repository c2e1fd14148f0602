package relay_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/jobweaver/jobweaver/functions/relay"
	"github.com/jobweaver/jobweaver/shared/outboxdb"
	"github.com/jobweaver/jobweaver/shared/pgtest"
	"github.com/jobweaver/jobweaver/shared/secret"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// job is a job as a relay submits it.
type job struct {
	JobID       uuid.UUID
	JobType     string
	Payload     json.RawMessage
	OrderingKey string
	Queue       string
}

// gateway is a test gateway that keeps each job id once, as the real gateway does. It calls misbehave after it has kept
// the jobs.
type gateway struct {
	*httptest.Server

	mu        sync.Mutex
	kept      []job // in the order of acceptance
	known     map[uuid.UUID]string
	replays   int
	requests  int
	misbehave func(w http.ResponseWriter, jobs []job) bool // reports whether it has answered
	refuse    func(job) int                                // the status of its refusal; 0: none
	changed   chan struct{}
}

func openGateway(t *testing.T) *gateway {
	t.Helper()
	g := &gateway{known: map[uuid.UUID]string{}, changed: make(chan struct{}, 1)}
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { g.submit(t, w, r) }))
	t.Cleanup(g.Close)
	return g
}

func (g *gateway) submit(t *testing.T, w http.ResponseWriter, r *http.Request) {
	var body struct{ Jobs []json.RawMessage }
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		t.Errorf("read batch: %v", err)
	}
	if r.URL.Path != "/api/jobs/batch" || r.Header.Get("Authorization") != "Bearer key" {
		t.Errorf("%s %s with %q", r.Method, r.URL, r.Header.Get("Authorization"))
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	defer func() {
		select {
		case g.changed <- struct{}{}:
		default:
		}
	}()
	g.requests++
	type result struct {
		Status int            `json:"status"`
		JobID  *uuid.UUID     `json:"jobId,omitempty"`
		Error  map[string]any `json:"error,omitempty"`
	}
	results := make([]result, len(body.Jobs))
	var jobs []job
	for i, raw := range body.Jobs {
		var j job
		if err := json.Unmarshal(raw, &j); err != nil {
			t.Errorf("read job: %v", err)
		}
		jobs = append(jobs, j)
		status := 0
		if g.refuse != nil {
			status = g.refuse(j)
		}
		switch before, known := g.known[j.JobID]; {
		case status != 0:
			results[i] = result{Status: status, Error: map[string]any{"errorCode": "API.TEST", "message": "refused"}}
		case known && before != string(raw):
			t.Errorf("job %s was %s and is %s", j.JobID, before, raw)
		case known:
			g.replays++
			results[i] = result{Status: http.StatusOK, JobID: &j.JobID}
		default:
			g.kept, g.known[j.JobID] = append(g.kept, j), string(raw)
			results[i] = result{Status: http.StatusAccepted, JobID: &j.JobID}
		}
	}
	if g.misbehave != nil && g.misbehave(w, jobs) {
		return
	}
	if err := json.NewEncoder(w).Encode(map[string]any{"results": results}); err != nil {
		t.Logf("answer: %v", err)
	}
}

// set changes how the gateway answers.
func (g *gateway) set(misbehave func(http.ResponseWriter, []job) bool, refuse func(job) int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.misbehave, g.refuse = misbehave, refuse
}

// await calls holds after each request, and returns when it is true.
func (g *gateway) await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	limit := time.After(30 * time.Second)
	for {
		g.mu.Lock()
		ok := holds()
		g.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-g.changed:
		case <-limit:
			t.Fatalf("there was never %s: %d jobs in %d requests", what, len(g.kept), g.requests)
		}
	}
}

// outbox is a user's database.
type outbox struct {
	t    *testing.T
	url  string
	pool *pgxpool.Pool
}

func openOutbox(t *testing.T) *outbox {
	t.Helper()
	o := &outbox{t: t, url: pgtest.Empty(t)}
	if err := outboxdb.Install(t.Context(), o.url, outboxdb.Roles{}); err != nil {
		t.Fatal(err)
	}
	var err error
	if o.pool, err = pgxpool.New(t.Context(), o.url); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.pool.Close)
	return o
}

func (o *outbox) exec(sql string, args ...any) {
	o.t.Helper()
	if _, err := o.pool.Exec(o.t.Context(), sql, args...); err != nil {
		o.t.Fatalf("%s: %v", sql, err)
	}
}

func (o *outbox) enqueue(payload int, options string) (id uuid.UUID) {
	o.t.Helper()
	err := o.pool.QueryRow(o.t.Context(), "select jobweaver.enqueue('OWN', to_jsonb($1::int), $2)", payload, options).Scan(&id)
	if err != nil {
		o.t.Fatal(err)
	}
	return id
}

func (o *outbox) count(table string) (n int) {
	o.t.Helper()
	if err := o.pool.QueryRow(o.t.Context(), "select count(*) from jobweaver."+table).Scan(&n); err != nil {
		o.t.Fatal(err)
	}
	return n
}

// awaitEmpty waits until the outbox is empty: a row stays for a moment after its job was accepted.
func (o *outbox) awaitEmpty() {
	o.t.Helper()
	await(o.t, "an empty outbox", func() bool { return o.count("outbox") == 0 })
}

// await repeats a check until it holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	limit := time.After(30 * time.Second)
	for !holds() {
		select {
		case <-again.C:
		case <-limit:
			t.Fatalf("there was never %s", what)
		}
	}
}

// start runs a relay until stop is called, or the test ends.
func start(t *testing.T, gatewayURL string, databases ...string) (stop func()) {
	t.Helper()
	cfg := relay.Config{GatewayURL: gatewayURL, APIKey: secret.Of("key"), Database: secret.Of(databases[0])}
	f, err := relay.New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx, nil) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		f.Close()
	})
	t.Cleanup(stop)
	return stop
}

// wantExactly compares what the gateway keeps with what was committed.
func (g *gateway) wantExactly(t *testing.T, committed []uuid.UUID) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	got := make([]uuid.UUID, len(g.kept))
	for i, j := range g.kept {
		got[i] = j.JobID
	}
	compare := func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) }
	slices.SortFunc(got, compare)
	want := slices.SortedFunc(slices.Values(committed), compare)
	if !slices.Equal(got, want) {
		t.Errorf("%d jobs, and %d rows were committed", len(got), len(want))
	}
}

// inTransaction enqueues some jobs in one transaction, and commits it or rolls it back.
func (o *outbox) inTransaction(ctx context.Context, payloads []int, options string, commit bool) (ids []uuid.UUID, err error) {
	tx, err := o.pool.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	rows, err := tx.Query(ctx, "select jobweaver.enqueue('OWN', to_jsonb(n), $2) from unnest($1::int[]) as n", payloads, options)
	if err != nil {
		return nil, err
	}
	if ids, err = pgx.CollectRows(rows, pgx.RowTo[uuid.UUID]); err != nil {
		return nil, err
	}
	if !commit {
		return nil, nil
	}
	if err := tx.Commit(ctx); err != nil {
		return nil, fmt.Errorf("commit: %w", err)
	}
	return ids, nil
}
