package pgpool_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/jobweaver/jobweaver/infra/laptop/localpostgres"
	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

// After a failover by DNS, sessions of the old server stay open, and it answers them.
func TestOneRefusedWriteDropsAllSessionsOfAServerThatIsReadOnly(t *testing.T) {
	t.Parallel()
	pool := table(t, "CREATE TABLE t (n int)")
	inAllSessions(t, pool, "SET default_transaction_read_only = on")
	write := "INSERT INTO t VALUES (1)"
	if _, err := pool.Exec(t.Context(), write); pgpool.Outage(err) != "the database accepts no writes" {
		t.Fatalf("a read-only session: %q, %v", pgpool.Outage(err), err)
	}
	for range 20 {
		exec(t, pool, write)
	}
	inAllSessions(t, pool, "SET default_transaction_read_only = on")
	if err := pgpool.Tx(t.Context(), pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), write)
		return err
	}); pgpool.Outage(err) != "the database accepts no writes" {
		t.Fatalf("within a transaction: %v", err)
	}
	exec(t, pool, write)
}

// A pool that only reads would otherwise keep its sessions of an old server for an hour.
func TestTheProbeDropsSessionsOfAServerThatIsReadOnly(t *testing.T) {
	t.Parallel()
	pool := open(t, pgtest.Database(t, migrations.API))
	if err := pgpool.Writable(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	inAllSessions(t, pool, "SET default_transaction_read_only = on")
	if err := pgpool.Writable(t.Context(), pool); pgpool.Outage(err) != "the database accepts no writes" {
		t.Fatal(err)
	}
	if err := pgpool.Writable(t.Context(), pool); err != nil {
		t.Errorf("after it: %v", err)
	}
}

// It is none of the pool's sessions, and an old server would never notify it.
func TestASessionThatListensEndsWithTheOthers(t *testing.T) {
	t.Parallel()
	pool := table(t, "CREATE TABLE t (n int)")
	listening, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- pgpool.Listen(t.Context(), pool, "c", sync.OnceFunc(func() { close(listening) })) }()
	<-listening
	inAllSessions(t, pool, "SET default_transaction_read_only = on")
	if err := pgpool.Writable(t.Context(), pool); pgpool.Outage(err) != "the database accepts no writes" {
		t.Fatal(err)
	}
	if err := <-ended; err == nil || t.Context().Err() != nil {
		t.Error(err)
	}
}

func TestNoSessionBeginsWhileTheServerIsReadOnly(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t, migrations.API)
	pool, database := open(t, url), alter(t, url)
	database("SET default_transaction_read_only = on")
	pool.Reset()
	for _, use := range []func(context.Context) error{
		pool.Ping,
		func(ctx context.Context) error { return pgpool.Writable(ctx, pool) },
		func(ctx context.Context) error { _, err := pgpool.Connect(ctx, url); return err },
	} {
		if err := use(t.Context()); pgpool.Outage(err) != "the database accepts no writes" {
			t.Errorf("read only: %q, %v", pgpool.Outage(err), err)
		}
	}
	reports := open(t, url, pgpool.ReadOnly())
	exec(t, reports, "SELECT FROM jobs")
	database("RESET default_transaction_read_only")
	if err := pgpool.Writable(t.Context(), pool); err != nil {
		t.Errorf("after it: %v", err)
	}
}

func TestAmongSeveralHostsTheOneThatAcceptsWritesIsFound(t *testing.T) {
	t.Parallel()
	old, err := localpostgres.Start(t.Context(), localpostgres.Config{
		Dir: t.TempDir(), NoSync: true, Settings: map[string]string{"default_transaction_read_only": "on"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = old.Stop() })
	at, err := pgpool.ReadAddress(old.URL())
	if err != nil {
		t.Fatal(err)
	}
	url := pgtest.Database(t, migrations.API)
	primary, err := pgpool.ReadAddress(url)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), old.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	for _, sql := range []string{
		"SET default_transaction_read_only = off",
		"ALTER ROLE " + pgx.Identifier{primary.User}.Sanitize() + " PASSWORD '" + primary.Password + "'",
		"CREATE DATABASE " + primary.Database,
	} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	both := strings.Replace(url, "@", "@"+pgpool.Places(old.URL())[0]+",", 1)
	if got := pgpool.Places(both); len(got) != 2 || at.Port == primary.Port {
		t.Fatalf("the address has %v", got)
	}
	pool := open(t, both)
	exec(t, pool, "CREATE TABLE t ()")
	if port := pool.Config().ConnConfig.Port; port != at.Port {
		t.Errorf("the first host has port %d", port)
	}
}

func TestSessionsDoNotFollowTheDefaultsOfADatabaseOrARole(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t, migrations.API)
	database := alter(t, url)
	for name, value := range map[string]string{
		"default_transaction_isolation": "serializable", "search_path": "elsewhere", "role": "pg_monitor", "datestyle": "'German'",
		"default_transaction_deferrable": "on", "timezone": "'Asia/Tokyo'", "bytea_output": "escape", "array_nulls": "off",
		"transform_null_equals": "on", "client_encoding": "latin1", "idle_session_timeout": "'7s'", "intervalstyle": "iso_8601",
		"standard_conforming_strings": "off", "statement_timeout": "'1s'", "lock_timeout": "'7s'",
	} {
		database("SET " + name + " = " + value)
	}
	want := map[string]string{
		"transaction_isolation": "read committed", "search_path": "public", "transaction_deferrable": "off",
		"timezone": "UTC", "bytea_output": "hex", "array_nulls": "on", "transform_null_equals": "off",
		"client_encoding": "UTF8", "datestyle": "ISO, MDY", "intervalstyle": "postgres", "standard_conforming_strings": "on",
	}
	single, err := pgpool.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = single.Close(context.Background()) }()
	pool := open(t, url)
	for name, value := range want {
		for kind, db := range map[string]pgpool.DB{"pool": pool, "single": single} {
			var got string
			if err := db.QueryRow(t.Context(), "SELECT current_setting($1)", name).Scan(&got); err != nil || got != value {
				t.Errorf("%s: %s is %s, want %s (%v)", kind, name, got, value, err)
			}
		}
	}
	var role, idle string
	err = pool.QueryRow(t.Context(), "SELECT current_setting('role'), current_setting('idle_session_timeout')").Scan(&role, &idle)
	if err != nil || role != "none" || idle != "0" {
		t.Errorf("role %s, idle sessions end after %s, %v", role, idle, err)
	}
	exec(t, pool, "SELECT FROM jobs")
}

func TestAPasswordIsReadAnewForEachConnection(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t, migrations.API)
	cfg, err := pgpool.ReadAddress(url)
	if err != nil {
		t.Fatal(err)
	}
	role := "short_lived_" + cfg.Database
	admin := pgtest.Pool(t, url)
	exec(t, admin, "CREATE ROLE "+role+" LOGIN PASSWORD 'first'")
	t.Cleanup(func() { _, _ = admin.Exec(context.Background(), "DROP ROLE "+role) })
	with := func(password string) string {
		return strings.Replace(url, "postgres://postgres:"+cfg.Password, "postgres://"+role+password, 1)
	}
	folder := t.TempDir()
	address, passfile := filepath.Join(folder, "url"), filepath.Join(folder, "pgpass")
	rewrite := func(password string) {
		for path, text := range map[string]string{address: with(":" + password), passfile: "*:*:*:*:" + password} {
			if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	rewrite("first")
	for kind, at := range map[string]string{"address": pgpool.InFile(address), "passfile": with("") + "&passfile=" + passfile} {
		rewrite("first")
		exec(t, admin, "ALTER ROLE "+role+" PASSWORD 'first'")
		pool := open(t, at)
		exec(t, admin, "ALTER ROLE "+role+" PASSWORD 'second'")
		pool.Reset()
		if err := pool.Ping(t.Context()); pgpool.Outage(err) != "the database refuses the password" {
			t.Errorf("%s, the old password: %q, %v", kind, pgpool.Outage(err), err)
		}
		rewrite("second")
		exec(t, pool, "SELECT 1")
	}
}

func TestTheProbeReadsTheSizeOfTheDatabase(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t, migrations.API)
	pool := open(t, url)
	if before := pgpool.Figures(pool); before.Bytes != 0 {
		t.Errorf("before the first probe the size is %d", before.Bytes)
	}
	if err := pgpool.Writable(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	var bytes int64
	if err := pool.QueryRow(t.Context(), "SELECT pg_database_size(current_database())").Scan(&bytes); err != nil {
		t.Fatal(err)
	}
	got := pgpool.Figures(pool)
	if got.Bytes < bytes/2 || got.Bytes > 2*bytes || !strings.Contains(url, "/"+got.Database) {
		t.Errorf("the probe has read %d bytes of %q, the database has %d", got.Bytes, got.Database, bytes)
	}
}

func TestTheProbeWritesNoWAL(t *testing.T) {
	t.Parallel()
	pool := open(t, pgtest.Database(t, migrations.API))
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	// The server has other tests, so the WAL of a session is measured: that of a statement, which EXPLAIN counts.
	for _, sql := range []string{"SET work_mem = '64kB'", "SET temp_tablespaces = ''"} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	rows, _ := conn.Query(t.Context(), "EXPLAIN (ANALYZE, WAL, BUFFERS) "+pgpool.SpillQuery)
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	plan := strings.Join(lines, "\n")
	if err != nil || strings.Contains(plan, "WAL:") || !strings.Contains(plan, "temp read=") {
		t.Errorf("%v\n%s", err, plan)
	}
}

// alter returns a function that changes the defaults of a database.
func alter(t *testing.T, url string) func(change string) {
	t.Helper()
	cfg, err := pgpool.ReadAddress(url)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), strings.Replace(url, "/"+cfg.Database, "/postgres", 1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return func(change string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), "ALTER DATABASE "+cfg.Database+" "+change); err != nil {
			t.Fatal(err)
		}
	}
}

// inAllSessions runs a statement in as many sessions as a pool may have.
func inAllSessions(t *testing.T, pool *pgxpool.Pool, sql string) {
	t.Helper()
	for range pool.Config().MaxConns {
		conn, err := pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Release()
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
}
