package apidb_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/infra/laptop/localpostgres"
	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/apidb/operationstore"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// patience is how long a request of the test waits for the replica that is not there.
const patience = 500 * time.Millisecond

// What a client has read must not be lost with the primary server.
func TestARepeatedRequestIsNotAnsweredBeforeAReplicaHasTheFirst(t *testing.T) {
	t.Parallel()
	h := openAlone(t)
	sender := h.Accept(t, apidbtest.NewJob())
	h.Apply(t, apidbtest.Status(sender.JobID, 1, jobstate.Waiting, func(s *jobevent.Status) {
		s.Attempt, s.CallbackDeadlineAt = 1, new(time.Now().Add(time.Hour))
	}))
	event, tied := apidbtest.NewJob(), apidbtest.Keyed("tied", "a")
	event.EventSource, event.EventID = "/shop", "1"
	tied.Request.OrderingKey = "k"
	limit, daily := 3, apidbtest.Schedule(t, "daily", `"cron": "0 3 * * *"`)
	requests := map[string]func(context.Context) error{
		"a job with a key":        h.submits(apidbtest.Keyed("one", "a")),
		"an event":                h.submits(event),
		"a batch":                 h.submits(apidbtest.Keyed("two", "a"), apidbtest.Keyed("three", "a")),
		"a job with an order":     h.submits(tied),
		"an operation with a key": func(ctx context.Context) error { return operates(ctx, h) },
		"a limit": func(ctx context.Context) error {
			_, err := h.Controls.ChangeControl(ctx, nil, apidb.Everyone, jobevent.ControlQueue, "default", "test", nil,
				func(c *jobevent.Control) { c.MaxRunning = &limit })
			return err
		},
		"the first admin key": func(ctx context.Context) error {
			_, err := h.Keys.EnsureAdmin(ctx, "first", make([]byte, 32), "test")
			return err
		},
		"a schedule": func(ctx context.Context) error {
			_, _, err := h.Schedules.Put(ctx, nil, apidb.Everyone, daily, nil)
			return err
		},
		"a cancel": func(ctx context.Context) error {
			_, err := h.Commands.KeepCommand(ctx, nil, apidb.Everyone, sender.JobID, jobevent.CommandCancel, "test")
			return err
		},
	}
	h.replicas(t, "nobody")
	for _, which := range []string{"the first", "the second"} {
		for name, ask := range requests {
			ctx, stop := context.WithTimeout(t.Context(), patience)
			if err := ask(ctx); err == nil || ctx.Err() == nil {
				t.Errorf("%s: %s was answered with %v", name, which, err)
			}
			stop()
		}
	}
	h.replicas(t, "")
	for name, ask := range requests {
		if err := ask(t.Context()); err != nil {
			t.Errorf("%s: the third: %v", name, err)
		}
	}
	// The repeated cancel and the repeated operation are stored once.
	if jobs := apidbtest.One[int](t, h, "SELECT count(*) FROM jobs"); jobs != 6 {
		t.Errorf("%d jobs", jobs)
	}
	if n := apidbtest.One[int](t, h, "SELECT (SELECT count(*) FROM operations) + (SELECT count(*) FROM commands)"); n != 2 {
		t.Errorf("%d operations and commands", n)
	}
}

func (h *fixture) submits(jobs ...jobstore.NewJob) func(context.Context) error {
	return func(ctx context.Context) error {
		for i := range jobs {
			jobs[i].JobID = uuid.Must(uuid.NewV7()) // each request has its own ids
		}
		_, err := h.Jobs.InsertJobs(ctx, jobs)
		return err
	}
}

func operates(ctx context.Context, h *fixture) error {
	_, _, err := h.Operations.InsertOperation(ctx, operationstore.NewOperation{
		ID: uuid.Must(uuid.NewV7()), Whose: apidb.Everyone, By: "test", RequestHash: []byte("hash"),
		Request: apibody.Operation{
			Command: jobevent.CommandRetry, IdempotencyKey: "op", JobIDs: []uuid.UUID{uuid.Must(uuid.NewV7())},
		},
	})
	return err
}

// openAlone is open with a separate server for the test.
func openAlone(t *testing.T) *fixture {
	t.Helper()
	server, err := localpostgres.Start(t.Context(), localpostgres.Config{
		Dir: t.TempDir(), NoSync: true, Settings: map[string]string{"synchronous_commit": "on"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	if err := migrations.Up(t.Context(), server.URL(), migrations.API, nil); err != nil {
		t.Fatal(err)
	}
	return &fixture{apidbtest.At(t, server.URL())}
}

// replicas sets the servers for which commits wait, and waits until they do: a background process of the server applies
// the setting.
func (h *fixture) replicas(t *testing.T, names string) {
	t.Helper()
	h.Exec(t, "ALTER SYSTEM SET synchronous_standby_names = '"+names+"'")
	h.Exec(t, "SELECT pg_reload_conf()")
	for waits := names == ""; waits != (names != ""); {
		h.Conn(t, func(ctx context.Context, c *pgx.Conn) error {
			ctx, stop := context.WithTimeout(ctx, patience)
			defer stop()
			_, err := c.Exec(ctx, "SELECT pg_logical_emit_message(true, 'test', ''::text)")
			waits = err != nil
			return t.Context().Err()
		})
	}
}
