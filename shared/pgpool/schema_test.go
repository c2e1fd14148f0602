package pgpool_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/infra/laptop/localpostgres"
	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/pgtest"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

func TestAFunctionMayAskForThingsOfItsSchemaWithoutAnyRightToThem(t *testing.T) {
	t.Parallel()
	pool := open(t, pgtest.As(pgtest.Database(t, migrations.API), "notify"))
	for thing, want := range map[string]bool{
		"audit_log": true, "audit_forget()": true, "jobs": true, "jobs.event_owner": true, "jobs_owned": true,
		"jobs.jobs_pairs": true,
		"none":            false, "none()": false, "audit_forget": false, "jobs.none": false, "none.job_id": false, "pg_class": false,
	} {
		if there, err := pgpool.HasSchema(t.Context(), pool, thing); err != nil || there != want {
			t.Errorf("%s is there: %t, %v", thing, there, err)
		}
	}
}

func TestMigrationsThatComeLateAreWaitedFor(t *testing.T) {
	t.Parallel()
	pool := open(t, pgtest.Database(t, migrations.API))
	opened := make(chan error, 1)
	go func() { opened <- pgpool.AwaitSchema(t.Context(), pool, "jobweaver_api", "late.thing") }()
	for _, sql := range []string{"CREATE TABLE late ()", "ALTER TABLE late ADD thing int"} {
		select {
		case err := <-opened:
			t.Fatalf("ended before %s: %v", sql, err)
		case <-time.After(150 * time.Millisecond):
		}
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-opened; err != nil {
		t.Error(err)
	}
}

func TestASchemaThatStaysTooOldIsNamed(t *testing.T) {
	t.Parallel()
	pool := open(t, pgtest.Database(t, migrations.API))
	err := pgpool.AwaitSchemaFor(t.Context(), pool, "jobweaver_api", "jobs.none", 300*time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "lacks jobs.none") || !strings.Contains(err.Error(), "jobweaver migrate") {
		t.Errorf("ended with %v", err)
	}
}

func TestTheFirstTryThatFailsIsLogged(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	ctx := telemetry.WithLogger(t.Context(), slog.New(slog.NewTextHandler(&out, nil)))
	tries := 0
	err := pgpool.Await(ctx, func(context.Context) error {
		if tries++; tries < 4 {
			return io.ErrUnexpectedEOF // as from a server that is starting
		}
		return nil
	})
	if err != nil || strings.Count(out.String(), "\n") != 1 || !strings.Contains(out.String(), `level=WARN msg="waiting for the database"`) {
		t.Errorf("%v after %q", err, &out)
	}
}

func TestAServerThatComesLateIsWaitedForAndWaitingEnds(t *testing.T) {
	t.Parallel()
	server, err := localpostgres.Start(t.Context(), localpostgres.Config{Dir: t.TempDir(), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := pgpool.AwaitServer(t.Context(), server.URL(), 300*time.Millisecond); err == nil || time.Since(began) > 10*time.Second {
		t.Errorf("no server was there: %v after %s", err, time.Since(began))
	}
	there := make(chan error, 1)
	go func() { there <- pgpool.AwaitServer(t.Context(), server.URL(), time.Minute) }()
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	if err := <-there; err != nil {
		t.Error(err)
	}
	if err := pgpool.AwaitServer(t.Context(), strings.Replace(server.URL(), ":", "://stranger:x@", 1), time.Minute); err == nil {
		t.Error("an address that is none was waited for")
	}
}
