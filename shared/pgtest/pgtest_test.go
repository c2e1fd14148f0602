package pgtest_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestEachTestHasItsOwnMigratedDatabase(t *testing.T) {
	t.Parallel()
	for _, set := range []migrations.Set{migrations.API, migrations.Scheduler, migrations.Worker} {
		t.Run(set.Name, func(t *testing.T) {
			t.Parallel()
			for range 2 {
				conn := connect(t, pgtest.Database(t, set))
				const sql = "CREATE TABLE mine AS SELECT count(*) FROM goose_db_version WHERE version_id > 0"
				if tag, err := conn.Exec(t.Context(), sql); err != nil || tag.RowsAffected() != 1 {
					t.Fatalf("%v, %v", tag, err)
				}
			}
		})
	}
}

func TestTheDatabaseIsDroppedUnderAnOpenConnection(t *testing.T) {
	t.Parallel()
	var url string
	t.Run("a test", func(t *testing.T) {
		url = pgtest.Database(t, migrations.API)
		conn, err := pgx.Connect(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.PgConn().Conn().Close() }) // unlike Close, it needs no context that is still alive
	})
	if conn, err := pgx.Connect(t.Context(), url); err == nil {
		_ = conn.Close(t.Context())
		t.Error("the database is still there")
	}
}

// The test runs itself in several processes, which all need the template at once.
func TestProcessesShareTheTemplate(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t, migrations.Worker)
	if os.Getenv("PGTEST_TEST_CHILD") != "" {
		return
	}
	var children []*exec.Cmd
	server, err := migrations.WithDatabase(url, "postgres")
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		cmd := exec.Command(os.Args[0], "-test.run=TestProcessesShareTheTemplate")
		cmd.Env = append(os.Environ(), "PGTEST_TEST_CHILD=1", "PGTEST_URL="+server)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		children = append(children, cmd)
	}
	for _, cmd := range children {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.PgConn().Conn().Close() })
	return conn
}
