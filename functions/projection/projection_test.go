package projection_test

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/functions/projection"
	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/apidb/logstore"
	"github.com/jobweaver/jobweaver/shared/apievent"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

type fixture struct {
	*projection.Function
	t     *testing.T
	store *apidbtest.Stores // with the rights of other functions
	own   *apidbtest.Stores // with the function's own rights
	conn  *pgx.Conn         // for plain SQL
}

func open(t *testing.T) *fixture {
	t.Helper()
	return openWith(t, projection.Config{})
}

func openWith(t *testing.T, cfg projection.Config) *fixture {
	t.Helper()
	h := &fixture{t: t}
	url := pgtest.Database(t, migrations.API)
	var err error
	h.store = apidbtest.Open(t, url)
	h.own = apidbtest.Open(t, pgtest.As(url, projection.Name))
	if h.conn, err = pgx.Connect(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.conn.Close(context.Background()) })
	if h.Function, err = projection.New(cfg, h.own.Store); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *fixture) exec(sql string, args ...any) {
	h.t.Helper()
	if _, err := h.conn.Exec(h.t.Context(), sql, args...); err != nil {
		h.t.Fatal(err)
	}
}

// accept accepts a job, and returns the event that the gateway publishes for it.
func (h *fixture) accept(change ...func(*jobspec.Request)) jobevent.Item {
	h.t.Helper()
	job := jobstore.NewJob{JobID: uuid.Must(uuid.NewV7()), TraceID: uuid.New(), Whose: apidb.Everyone, Request: jobspec.Request{
		JobType: "EMAIL", Payload: json.RawMessage(`{"b": 1, "a": [1.50, "<ü>"]}`), Queue: "default",
		Spec: jobevent.Spec{MaxRetryCount: 3, TimeoutMs: (time.Minute).Milliseconds()},
	}}
	for _, c := range change {
		c(&job.Request)
	}
	accepted, err := h.store.Jobs.InsertJobs(h.t.Context(), []jobstore.NewJob{job})
	if err != nil {
		h.t.Fatal(err)
	}
	e, err := apievent.Created(accepted[0].Created(job))
	if err != nil {
		h.t.Fatal(err)
	}
	return e
}

// grow makes all instants older, in the rows and in the function's memory.
func (h *fixture) grow(age time.Duration) {
	h.t.Helper()
	h.Grow(age)
	h.exec("update jobs set created_at = created_at - $1::interval, updated_at = updated_at - $1::interval", age)
	h.exec("update commands set created_at = created_at - $1::interval", age)
	h.exec("update callbacks set received_at = received_at - $1::interval", age)
	h.exec("update controls set updated_at = updated_at - $1::interval", age)
}

// pass ticks until the next tick is due later.
func (h *fixture) pass() (all []jobevent.Item) {
	h.t.Helper()
	for {
		events, next, err := h.Tick(h.t.Context())
		if err != nil {
			h.t.Fatal(err)
		}
		if all = append(all, events...); next > 0 {
			return all
		}
	}
}

func (h *fixture) handle(events ...jobevent.Item) {
	h.t.Helper()
	if items, err := h.Handle(h.t.Context(), events); err != nil || len(items) > 0 {
		h.t.Fatal(items, err)
	}
}

func (h *fixture) job(id string) jobstore.Job {
	h.t.Helper()
	job, err := h.store.Jobs.Job(h.t.Context(), apidb.Everyone, uuid.MustParse(id))
	if err != nil {
		h.t.Fatal(err)
	}
	return job
}

func event(t *testing.T, typ, function, id string, jobID uuid.UUID, data any) jobevent.Item {
	t.Helper()
	e, err := jobevent.New(typ, jobevent.Meta{Function: function, ID: id, JobID: jobID}, data)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func status(t *testing.T, jobID string, version int64, status jobstate.Status, change ...func(*jobevent.Status)) jobevent.Item {
	t.Helper()
	id := uuid.MustParse(jobID)
	s := jobevent.Status{JobID: id, Version: version, Status: string(status), UpdatedAt: time.Now(),
		History: []jobevent.Transition{{At: time.Now(), To: string(status), By: "test"}}}
	for _, c := range change {
		c(&s)
	}
	return event(t, jobevent.TypeStatus, "outcome", jobevent.StatusID(id, version), id, s)
}

// The scheduler asks by publishing the WAITING status again.
func TestAnOverdueCallbackFailsItsAttempt(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.accept().Subject()
	waits := func(left time.Duration) jobevent.Item {
		return status(t, id, 1, jobstate.Waiting, func(s *jobevent.Status) {
			at := time.Now().Add(left)
			s.Attempt, s.CallbackDeadlineAt = 1, &at
		})
	}
	for _, left := range []time.Duration{time.Hour, 30 * time.Second} {
		if outcomes, err := h.Handle(t.Context(), []jobevent.Item{waits(left)}); err != nil || len(outcomes) != 0 {
			t.Errorf("%s before, it returned %v, %v", left, outcomes, err)
		}
	}
	for range 2 {
		outcomes, err := h.Handle(t.Context(), []jobevent.Item{waits(-time.Second), waits(-time.Second)})
		if err != nil || len(outcomes) != 1 || outcomes[0].Type() != jobevent.TypeFailed {
			t.Fatalf("it returned %v, %v", outcomes, err)
		}
		failed, err := jobevent.Decode[jobevent.Failed](outcomes[0])
		if err != nil || failed.ErrorCode != "WORKER.CALLBACK_TIMEOUT" || failed.Attempt != 1 || !failed.Retryable {
			t.Errorf("it returned %+v, %v", failed, err)
		}
	}
}

// All events of some jobs, each twice, in any order and in batches of any size, give the same result.
func TestRedeliveryInAnyOrderGivesTheSameResult(t *testing.T) {
	t.Parallel()
	h := open(t)
	var ids []string
	var events []jobevent.Item
	for range 5 {
		jobID := h.accept().Subject()
		id := uuid.MustParse(jobID)
		ids = append(ids, jobID)
		attempt := func(n int) func(*jobevent.Status) { return func(s *jobevent.Status) { s.Attempt = n } }
		events = append(events,
			status(t, jobID, 1, jobstate.Queued, attempt(1)), status(t, jobID, 2, jobstate.Running, attempt(1)),
			status(t, jobID, 3, jobstate.Retrying, attempt(1)), status(t, jobID, 4, jobstate.Queued, attempt(2)),
			status(t, jobID, 5, jobstate.Completed, attempt(2), func(s *jobevent.Status) { s.Output = json.RawMessage(`{"n": 1}`) }),
			event(t, jobevent.TypeAttemptLog, "runjob", jobevent.AttemptLogID(id, 1, 0), id, jobevent.AttemptLog{
				JobID: id, Attempt: 1, Lines: []jobevent.LogLine{{Level: "INFO", Text: "hi"}}}),
			event(t, jobevent.TypeHeartbeat, "runjob", uuid.NewString(), uuid.Nil, jobevent.Heartbeat{WorkerID: "w",
				Slots: 3, Free: 2, Attempts: []jobevent.ListedAttempt{{JobID: id, Attempt: 1, Progress: &jobevent.Progress{Percent: 5}}}}),
		)
	}
	events = append(events, events...)
	rand.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
	for len(events) > 0 {
		n := min(1+rand.IntN(9), len(events))
		h.handle(events[:n]...)
		events = events[n:]
	}
	for _, id := range ids {
		job := h.job(id)
		lines, _, err := h.store.Logs.List(t.Context(), apidb.Everyone, job.JobID, logstore.Filter{MaxBytes: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		if job.Status != jobstate.Completed || job.Version != 5 || job.Attempt != 2 || string(job.Snapshot.Output) != `{"n":1}` ||
			job.Progress != nil || len(lines) != 1 {
			t.Errorf("job %+v, log %v", job, lines)
		}
	}
}

func TestUnknownAndIncompleteEventsAreInvalid(t *testing.T) {
	t.Parallel()
	h := open(t)
	broken := status(t, h.accept().Subject(), 1, jobstate.Running).Event()
	broken.DataEncoded = []byte(`{"jobId": 7}`)
	before := event(t, jobevent.TypeStatus, "outcome", "1", uuid.New(),
		jobevent.Status{JobID: h.accept().JobID(), Version: 1, Status: "QUEUED", Attempt: -1, History: []jobevent.Transition{}})
	for name, e := range map[string]jobevent.Item{
		"another type":             event(t, jobevent.TypeCreated, "gateway", "1", uuid.New(), struct{}{}),
		"broken data":              jobevent.ItemOf(broken),
		"broken data, packed":      together(t, jobevent.ItemOf(broken))[0],
		"no job":                   event(t, jobevent.TypeStatus, "outcome", "1", uuid.New(), jobevent.Status{Version: 1, Status: "PENDING"}),
		"no version":               status(t, h.accept().Subject(), 0, jobstate.Pending),
		"no worker":                event(t, jobevent.TypeHeartbeat, "runjob", "1", uuid.Nil, jobevent.Heartbeat{}),
		"a log of none":            event(t, jobevent.TypeAttemptLog, "runjob", "1", uuid.New(), jobevent.AttemptLog{Attempt: 1}),
		"before the first attempt": before,
		"a wrong state":            status(t, h.accept().Subject(), 1, "HAPPY"),
	} {
		if _, err := h.Handle(t.Context(), []jobevent.Item{e}); !errors.Is(err, jobevent.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
