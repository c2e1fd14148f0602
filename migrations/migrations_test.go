package migrations_test

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/jobweaver/jobweaver/infra/laptop/localpostgres"
	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// A server of its own, since the three databases have fixed names.
func TestDatabasesAreMadeAndMigratedInParallelAndTwice(t *testing.T) {
	t.Parallel()
	server, err := localpostgres.Start(t.Context(), localpostgres.Config{Dir: t.TempDir(), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	for range 2 {
		var all errgroup.Group
		for range 4 {
			all.Go(func() error { return ensureAndMigrate(t, server.URL()) })
		}
		if err := all.Wait(); err != nil {
			t.Fatal(err)
		}
	}
}

func ensureAndMigrate(t *testing.T, server string) error {
	urls, err := migrations.EnsureDatabases(t.Context(), server)
	if err != nil {
		return err
	}
	for url, set := range map[string]migrations.Set{
		urls.API: migrations.API, urls.Scheduler: migrations.Scheduler, urls.Worker: migrations.Worker,
	} {
		if err := migrations.Up(t.Context(), url, set, nil); err != nil {
			return err
		}
		conn, err := pgx.Connect(t.Context(), url)
		if err != nil {
			return err
		}
		var applied int
		err = conn.QueryRow(t.Context(), "SELECT count(*) FROM goose_db_version WHERE version_id > 0").Scan(&applied)
		_ = conn.Close(t.Context())
		if err != nil {
			return err
		}
		if files, _ := os.ReadDir(set.Name); applied != len(files) {
			t.Errorf("%s: %d migrations applied, there are %d", set.Name, applied, len(files))
		}
	}
	return nil
}

func TestAnAddressKeepsAllButItsDatabase(t *testing.T) {
	t.Parallel()
	got, err := migrations.WithDatabase("postgres://u:p%40@h:1/x?sslmode=disable", "y")
	if want := "postgres://u:p%40@h:1/y?sslmode=disable"; err != nil || got != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	got, err = migrations.WithDatabase("host=h password=secret dbname=x", "y z")
	if want := "host=h password=secret dbname=x dbname='y z'"; err != nil || got != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	if _, err := migrations.WithDatabase("secret", "y"); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("what is no address: %v", err)
	}
}

// A dump reads a table for hours. A migration that waits for it must not stop all other statements.
func TestAMigrationThatWaitsForADumpLetsOthersThrough(t *testing.T) {
	t.Parallel()
	set := migrations.Set{Name: "in_use", FS: fstest.MapFS{
		"00001_jobs.sql": {Data: []byte("-- +goose Up\nCREATE TABLE jobs ();\n")},
	}}
	url := pgtest.Empty(t)
	if err := migrations.Up(t.Context(), url, set, nil); err != nil {
		t.Fatal(err)
	}
	set.FS = fstest.MapFS{
		"00001_jobs.sql":   {Data: []byte("-- +goose Up\nCREATE TABLE jobs ();\n")},
		"00002_column.sql": {Data: []byte("-- +goose Up\nALTER TABLE jobs ADD COLUMN c int;\n")},
	}
	dump, others := connect(t, url), connect(t, url)
	read := "SELECT FROM jobs LIMIT 1"
	exec(t, dump, "BEGIN; "+read)
	migrated := make(chan error, 1)
	var begun []string
	begins := func(migration string) { begun = append(begun, migration) }
	go func() { migrated <- migrations.Up(t.Context(), url, set, begins) }()
	pgtest.UntilBlocked(t, others.QueryRow)
	if _, err := others.Exec(t.Context(), "SET statement_timeout = '4s'; "+read); err != nil {
		t.Errorf("while the migration waits: %v", err)
	}
	exec(t, dump, "COMMIT")
	if err := <-migrated; err != nil {
		t.Fatal(err)
	}
	if database, own, err := migrations.Versions(t.Context(), url, set); database != own || err != nil {
		t.Errorf("the database has migration %d of %d: %v", database, own, err)
	}
	if len(begun) != 1 || begun[0] != "00002_column.sql" {
		t.Errorf("it announced %v", begun)
	}
}

func TestAMigrationThatDeadlocksLetsTheOtherSessionThrough(t *testing.T) {
	t.Parallel()
	url := pgtest.Empty(t)
	other, observer := connect(t, url), connect(t, url)
	exec(t, other, "CREATE TABLE a (); CREATE TABLE b ()")
	twoTables := migrations.Set{Name: "two_tables", FS: fstest.MapFS{"00001_columns.sql": {Data: []byte(
		"-- +goose Up\nALTER TABLE a ADD c int;\nALTER TABLE b ADD c int;\n",
	)}}}
	// The migration looks for a deadlock after a second, which is PostgreSQL's default.
	exec(t, other, "SET deadlock_timeout = '1min'; BEGIN; SELECT FROM b")
	migrated := make(chan error, 1)
	go func() { migrated <- migrations.Up(t.Context(), url, twoTables, nil) }()
	pgtest.UntilBlocked(t, observer.QueryRow)
	exec(t, other, "SELECT FROM a; COMMIT")
	if err := <-migrated; err != nil {
		t.Fatal(err)
	}
	exec(t, other, "SELECT a.c, b.c FROM a, b")
}
