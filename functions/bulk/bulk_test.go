package bulk

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/apidb/operationstore"
	"github.com/jobweaver/jobweaver/shared/apidb/statusstore"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

type fixture struct {
	t     *testing.T
	store *apidbtest.Stores // for the changes that other functions make
	own   *apidbtest.Stores // with the function's own rights
	conn  *pgx.Conn         // round the store
}

func open(t *testing.T) *fixture {
	t.Helper()
	url := pgtest.Database(t, migrations.API)
	store := apidbtest.Open(t, url)
	own := apidbtest.Open(t, pgtest.As(url, Name))
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return &fixture{t: t, store: store, own: own, conn: conn}
}

func (h *fixture) exec(sql string, args ...any) {
	h.t.Helper()
	if _, err := h.conn.Exec(h.t.Context(), sql, args...); err != nil {
		h.t.Fatal(err)
	}
}

// jobs inserts n FAILED jobs.
func (h *fixture) jobs(n int) {
	h.t.Helper()
	h.exec(`insert into jobs (job_id, job_type, queue, payload, spec, trace_id, status, version, snapshot)
		select uuidv7(), 'X', 'default', '{}', '{"priority":0,"maxRetryCount":3,"timeoutMs":1000}', gen_random_uuid(), 'FAILED', 1, '{}' from generate_series(1, $1::int)`, n)
}

func (h *fixture) redrive() uuid.UUID {
	h.t.Helper()
	op, _, err := h.store.Operations.InsertOperation(h.t.Context(), operationstore.NewOperation{ID: uuid.Must(uuid.NewV7()), By: "me", Whose: apidb.Everyone,
		Request: apibody.Operation{Command: jobevent.CommandRetry, Filter: &apibody.Filter{All: true}}})
	if err != nil {
		h.t.Fatal(err)
	}
	return op.ID
}

// answer stores the scheduler's answers to commands, as projection does.
func (h *fixture) answer(published []jobevent.Item) {
	h.t.Helper()
	var words []statusstore.PublishedStatus
	for _, e := range published {
		command, err := jobevent.DecodeAs[jobevent.Command](e, jobevent.TypeCommand)
		if err != nil {
			h.t.Fatal(err)
		}
		words = append(words, statusstore.PublishedStatus{JSON: []byte(`{}`), Status: jobevent.Status{
			JobID: command.JobID, Version: 2, Status: "PENDING", UpdatedAt: time.Now(),
			LastCommand: &jobevent.CommandResult{Number: command.Number, Command: command.Command, Applied: true},
		}})
	}
	if _, err := h.store.Statuses.ApplyStatuses(h.t.Context(), words); err != nil {
		h.t.Fatal(err)
	}
}

func awaitWake(t *testing.T, wake <-chan struct{}) {
	t.Helper()
	select {
	case <-wake:
	case <-time.After(20 * time.Second):
		t.Fatal("it was not woken")
	}
}

func TestItIsWokenByAnOperationAndByAnswersUntilAllAreIn(t *testing.T) {
	t.Parallel()
	h := open(t)
	host := New(h.own.Store).Host()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- host.Run(ctx, nil) }()
	awaitWake(t, host.Wake) // it listens now
	if events, next, err := host.Tick(ctx); err != nil || len(events) != 0 || next != every {
		t.Errorf("with nothing to do it returned %v and sleeps %s (%v)", events, next, err)
	}
	h.jobs(2_600)
	id := h.redrive()
	asked := map[string]bool{}
	for op := (operationstore.Operation{}); !op.Ended(); {
		awaitWake(t, host.Wake)
		for next := time.Duration(0); next == 0; {
			var events []jobevent.Item
			var err error
			if events, next, err = host.Tick(ctx); err != nil {
				t.Fatal(err)
			}
			for _, e := range events {
				if asked[e.ID()] {
					t.Errorf("%s is published twice", e.ID())
				}
				asked[e.ID()] = true
			}
			h.answer(events)
		}
		var err error
		if op, err = h.store.Operations.Operation(ctx, apidb.Everyone, id); err != nil {
			t.Fatal(err)
		}
	}
	if len(asked) != 2_600 {
		t.Errorf("%d commands were published", len(asked))
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestAPassThatDoesNotGetThroughIsDoneAgain(t *testing.T) {
	t.Parallel()
	h := open(t)
	f := New(h.own.Store)
	h.jobs(700)
	id := h.redrive()
	h.exec("alter table operation_answers rename to away")
	if events, _, err := f.Tick(t.Context()); err == nil || len(events) > 0 {
		t.Errorf("without its table it returned %d, %v", len(events), err)
	}
	h.exec("alter table away rename to operation_answers")
	first, next, err := f.Tick(t.Context())
	if err != nil || len(first) != 500 || next != 0 {
		t.Fatalf("it returned %d, next in %s, %v", len(first), next, err)
	}
	// The function dies before it has published them. Another instance continues, and reconcile publishes the stored
	// commands.
	rest, _, err := New(h.own.Store).Tick(t.Context())
	if err != nil || len(rest) != 200 {
		t.Fatalf("it returned %d, %v", len(rest), err)
	}
	h.exec("update commands set created_at = created_at - interval '10 s'")
	kept, err := h.store.Statuses.UnconfirmedCommands(t.Context(), apidb.Page{Until: time.Now().Add(time.Second), Limit: 1000})
	if err != nil || len(kept) != 700 {
		t.Errorf("%d commands are kept, %v", len(kept), err)
	}
	h.answer(append(first, rest...))
	if _, _, err := f.Tick(t.Context()); err != nil {
		t.Fatal(err)
	}
	if op, err := h.store.Operations.Operation(t.Context(), apidb.Everyone, id); err != nil || !op.Ended() || op.Applied != 700 {
		t.Errorf("%+v, %v", op, err)
	}
}

func TestFourLargeOperationsDoNotStarveTheFifth(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.jobs(10_000)
	for n := range 4 { // each with its own jobs, enough for many full passes
		id := h.redrive()
		h.exec(`update operations set filter = null, job_ids = (select array_agg(job_id order by job_id) from (
			select job_id, row_number() over (order by job_id) as n from jobs) as numbered where n % 5 = $2) where operation_id = $1`, id, n)
	}
	fifth := h.redrive()
	h.exec("update operations set filter = null, job_ids = (select array_agg(job_id) from (select job_id from jobs order by job_id desc limit 1) as one) "+
		"where operation_id = $1", fifth)
	f := New(h.own.Store)
	for pass := range 2 {
		events, _, err := f.Tick(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		h.answer(events)
		if op, err := h.store.Operations.Operation(t.Context(), apidb.Everyone, fifth); err != nil || op.Walked != (pass == 1) {
			t.Errorf("after pass %d: %+v, %v", pass+1, op, err)
		}
	}
}

func TestOneOperationThatCannotBeDoneHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.jobs(10)
	h.exec("update operations set filter = '[]' where operation_id = $1", h.redrive())
	h.redrive()
	f := New(h.own.Store)
	if events, _, err := f.Tick(t.Context()); err != nil || len(events) != 10 {
		t.Errorf("it returned %d, %v", len(events), err)
	}
	if _, _, err := f.Tick(t.Context()); err == nil {
		t.Error("it is not published")
	}
}
