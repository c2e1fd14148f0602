package pgpool_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/jobweaver/jobweaver/infra/laptop/localpostgres"
	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestSessionsHaveOurSettingsAndTheAddressWins(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t, migrations.API)
	pool := open(t, url+"&lock_timeout=2s", pgpool.IndexOnly(), pgpool.ApplicationName("gateway"))
	for name, want := range map[string]string{
		"application_name": "gateway", "timezone": "UTC", "statement_timeout": "30s", "lock_timeout": "2s",
		"idle_in_transaction_session_timeout": "3s", "enable_seqscan": "off", "enable_hashjoin": "off",
		"transaction_timeout": "30s", "tcp_user_timeout": "5000", "tcp_keepalives_idle": "3", "tcp_keepalives_interval": "1",
	} {
		var got string
		if err := pool.QueryRow(t.Context(), "SELECT current_setting($1)", name).Scan(&got); err != nil || got != want {
			t.Errorf("%s is %s, want %s (%v)", name, got, want, err)
		}
	}
	// The test server has JIT off as well, so this checks where the setting comes from.
	var source string
	err := pool.QueryRow(t.Context(), "SELECT source FROM pg_settings WHERE name = 'jit' AND setting = 'off'").Scan(&source)
	if err != nil || source != "client" {
		t.Errorf("jit is off by %q, %v", source, err)
	}
}

// A function that starts while PostgreSQL is killed waits for it like one that starts a moment later.
func TestAwaitTriesAgainWhenTheServerEndsItsSession(t *testing.T) {
	t.Parallel()
	pool := open(t, pgtest.Database(t, migrations.API))
	tries := 0
	err := pgpool.Await(t.Context(), func(ctx context.Context) error {
		if tries++; tries == 1 {
			_, err := pool.Exec(ctx, "SELECT pg_terminate_backend(pg_backend_pid())")
			return err
		}
		_, err := pool.Exec(ctx, "SELECT 1/(2 - $1::int)", tries)
		return err
	})
	if err == nil || pgpool.IsUnavailable(err) || tries != 2 {
		t.Errorf("it ended with %v after %d tries, not with the division by zero in the second", err, tries)
	}
}

func TestOpenFailsAtOnceWhenWaitingCannotHelp(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t, migrations.API)
	missing, err := migrations.WithDatabase(url, "no_such_database")
	if err != nil {
		t.Fatal(err)
	}
	wrong := strings.Replace(url, "postgres://postgres:", "postgres://postgres:x", 1)
	within, cancel := context.WithTimeout(t.Context(), 15*time.Second) // Open waits for 20 s
	defer cancel()
	for address, want := range map[string]string{
		missing:                    "the database does not exist",
		wrong:                      "the database refuses the password",
		url + "&role=no_such_role": "the database refuses the connection",
		strings.Replace(url, "sslmode=disable", "sslmode=verify-full&sslrootcert=/not/there", 1): "",
	} {
		_, err := pgpool.Open(within, address)
		if err == nil || within.Err() != nil || want != "" && pgpool.Outage(err) != want {
			t.Errorf("%s: %q, %v", want, pgpool.Outage(err), err)
		}
	}
}

func TestErrorsOfTheDataAreInvalid(t *testing.T) {
	t.Parallel()
	pool := table(t, "CREATE TABLE t (n int PRIMARY KEY CHECK (n > 0), s text, j jsonb)")
	exec(t, pool, "INSERT INTO t VALUES (1)")
	for name, c := range map[string]struct {
		sql     string
		arg     any
		invalid bool
	}{
		"a value twice":             {"INSERT INTO t VALUES ($1)", 1, true},
		"a value that is refused":   {"INSERT INTO t VALUES ($1)", -1, true},
		"a NUL byte":                {"INSERT INTO t VALUES (2, $1)", "a\x00b", true},
		"bad UTF-8":                 {"INSERT INTO t VALUES (2, $1)", "\xff", true},
		"NUL in JSON":               {"INSERT INTO t VALUES (2, '', $1)", `"\u0000"`, true},
		"a number over its type":    {"INSERT INTO t VALUES ($1)", math.MaxInt64, true},
		"a key over what fits":      {"SELECT repeat('x', $1)", 1 << 30, true},
		"a statement that is wrong": {"SELEC $1", 1, false},
		"a table that is missing":   {"SELECT * FROM nowhere WHERE n = $1", 1, false},
		"none":                      {"SELECT $1::int", 1, false},
	} {
		err := pgpool.Tx(t.Context(), pool, func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), c.sql, c.arg)
			return err
		})
		if errors.Is(err, jobevent.ErrInvalid) != c.invalid || pgpool.IsUnavailable(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestADeadlockIsRunAgain(t *testing.T) {
	t.Parallel()
	pool := table(t, "CREATE TABLE t (n int PRIMARY KEY, hits int); INSERT INTO t VALUES (1, 0), (2, 0)")
	var runs, met atomic.Int32
	both := make(chan struct{})
	var group errgroup.Group
	for _, rows := range [][2]int{{1, 2}, {2, 1}} {
		group.Go(func() error {
			return pgpool.Tx(t.Context(), pool, func(tx pgx.Tx) error {
				runs.Add(1)
				if err := hit(t.Context(), tx, rows[0]); err != nil {
					return err
				}
				if met.Add(1) == 2 {
					close(both)
				}
				<-both
				return hit(t.Context(), tx, rows[1])
			})
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	var hits int
	if err := pool.QueryRow(t.Context(), "SELECT sum(hits) FROM t").Scan(&hits); err != nil || hits != 4 {
		t.Errorf("%d hits, want 4 (%v)", hits, err)
	}
	if runs.Load() < 3 {
		t.Error("no transaction had to give way: the test shows nothing")
	}
}

func TestADatabaseThatIsAwayIsUnavailableAndOpenWaitsForIt(t *testing.T) {
	t.Parallel()
	server, err := localpostgres.Start(t.Context(), localpostgres.Config{Dir: t.TempDir(), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	url := server.URL()
	pool := open(t, url)
	err = pgpool.Tx(t.Context(), pool, func(tx pgx.Tx) error {
		if err := server.Kill(); err != nil {
			return err
		}
		_, err := tx.Exec(t.Context(), "SELECT 1")
		return err
	})
	if !pgpool.IsUnavailable(err) || errors.Is(err, jobevent.ErrInvalid) {
		t.Errorf("killed within a transaction: %v", err)
	}
	if err := pool.Ping(t.Context()); !pgpool.IsUnavailable(err) {
		t.Errorf("away: %v", err)
	}
	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := pgpool.Open(short, url); !pgpool.IsUnavailable(err) {
		t.Errorf("opened while away: %v", err)
	}
	back := make(chan error, 1)
	go func() { back <- server.Restart(t.Context()) }()
	open(t, url)
	if err := <-back; err != nil {
		t.Fatal(err)
	}
	exec(t, pool, "SELECT 1")
}

func hit(ctx context.Context, tx pgx.Tx, n int) error {
	_, err := tx.Exec(ctx, "UPDATE t SET hits = hits + 1 WHERE n = $1", n)
	return err
}

func open(t *testing.T, url string, options ...pgpool.Option) *pgxpool.Pool {
	t.Helper()
	pool, err := pgpool.Open(t.Context(), url, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func table(t *testing.T, sql string) *pgxpool.Pool {
	t.Helper()
	pool := open(t, pgtest.Database(t, migrations.API))
	exec(t, pool, sql)
	return pool
}

func exec(t *testing.T, pool *pgxpool.Pool, sql string) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}
