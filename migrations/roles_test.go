package migrations_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/sync/errgroup"

	"github.com/jobweaver/jobweaver/infra/laptop/localpostgres"
	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

var sets = []migrations.Set{migrations.API, migrations.Scheduler, migrations.Worker}

// Its own server: roles belong to a server, and have fixed names.
func TestRolesAreMadeInParallelAndTwiceAndEachComesIntoItsDatabaseOnly(t *testing.T) {
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
	admin := connect(t, server.URL())
	// Rights that an operator granted before, to an existing role.
	exec(t, admin, "CREATE ROLE jobweaver_notify LOGIN CREATEDB CREATEROLE")
	// Not a superuser, as on a rented PostgreSQL.
	exec(t, admin, "CREATE ROLE boss LOGIN CREATEDB CREATEROLE PASSWORD 'boss'; GRANT jobweaver_notify TO boss WITH ADMIN OPTION")
	boss := strings.Replace(server.URL(), strings.SplitAfter(server.URL(), "@")[0], "postgres://boss:boss@", 1)
	passwords := map[string]string{}
	for _, set := range sets {
		for _, role := range set.Roles() {
			passwords[role] = "of 'the' " + role
		}
	}
	var urls migrations.URLs
	for range 2 {
		var all errgroup.Group
		for range 4 {
			all.Go(func() error { return ensureAndMigrate(t, boss) })
		}
		if err := all.Wait(); err != nil {
			t.Fatal(err)
		}
		if urls, err = migrations.EnsureDatabases(t.Context(), boss); err != nil {
			t.Fatal(err)
		}
		for range 4 {
			for _, set := range sets {
				all.Go(func() error { return migrations.Grant(t.Context(), urls.Of(set.Functions[0]), set, passwords) })
			}
		}
		if err := all.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	for _, set := range sets {
		for _, function := range set.Functions {
			comesIntoItsDatabaseOnly(t, urls, set, function, passwords[migrations.Role(function)])
		}
	}
	// Without passwords none is changed, and a superuser revokes what only a superuser can have granted.
	exec(t, admin, "ALTER ROLE jobweaver_cron SUPERUSER CREATEDB CREATEROLE REPLICATION BYPASSRLS")
	at, err := migrations.WithDatabase(server.URL(), migrations.API.Database())
	if err != nil {
		t.Fatal(err)
	}
	if err := migrations.Grant(t.Context(), at, migrations.API, nil); err != nil {
		t.Fatal(err)
	}
	comesIntoItsDatabaseOnly(t, urls, migrations.API, "cron", passwords["jobweaver_cron"])
}

func comesIntoItsDatabaseOnly(t *testing.T, urls migrations.URLs, set migrations.Set, function, password string) {
	t.Helper()
	own, err := urls.As(function, password)
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range sets {
		at, err := migrations.WithDatabase(own, other.Database())
		if err != nil {
			t.Fatal(err)
		}
		conn, err := pgx.Connect(t.Context(), at)
		if other.Name != set.Name {
			if !isDenied(err) {
				t.Errorf("%s comes into %s: %v", function, other.Database(), err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, sql := range []string{
			"CREATE TABLE mine ()", "CREATE TEMP TABLE mine ()", "CREATE SCHEMA mine", "SELECT FROM goose_db_version",
			"CREATE ROLE mine", "CREATE DATABASE mine", "SELECT pg_read_file('PG_VERSION')", "SELECT FROM pg_authid",
			"SET ROLE postgres", "ALTER TABLE " + firstTable[set.Name] + " DISABLE TRIGGER ALL",
			"TRUNCATE " + firstTable[set.Name], "COPY " + firstTable[set.Name] + " TO PROGRAM 'cat'",
		} {
			if _, err := conn.Exec(t.Context(), sql); !isDenied(err) {
				t.Errorf("%s may %s: %v", function, sql, err)
			}
		}
		if err := conn.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

var firstTable = map[string]string{"api": "jobs", "scheduler": "jobs", "worker": "execution_attempts"}

func TestWhatAMigrationAddsIsNobodysUntilItIsGranted(t *testing.T) {
	t.Parallel()
	for _, set := range sets {
		conn := connect(t, pgtest.Database(t, set))
		exec(t, conn, "CREATE TABLE added (id bigint GENERATED ALWAYS AS IDENTITY, x text); CREATE SEQUENCE numbers")
		exec(t, conn, "CREATE FUNCTION f() RETURNS integer LANGUAGE sql IMMUTABLE RETURN 1; CREATE VIEW seen AS SELECT 1 AS x")
		for _, role := range set.Roles() {
			exec(t, conn, "SET ROLE "+role)
			for _, sql := range []string{
				"SELECT FROM added", "INSERT INTO added (x) VALUES ('')", "UPDATE added SET x = ''", "DELETE FROM added",
				"SELECT nextval('numbers')", "SELECT f()", "SELECT FROM seen",
			} {
				if _, err := conn.Exec(t.Context(), sql); !isDenied(err) {
					t.Errorf("%s may %s: %v", role, sql, err)
				}
			}
			exec(t, conn, "RESET ROLE")
		}
	}
}

func TestRightsThatWereGrantedByHandAreRevoked(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t, migrations.API)
	conn := connect(t, url)
	exec(t, conn, "GRANT ALL ON ALL TABLES IN SCHEMA public TO jobweaver_notify, PUBLIC; GRANT CREATE ON SCHEMA public TO PUBLIC")
	exec(t, conn, "GRANT SELECT (payload) ON jobs TO jobweaver_bulk; GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO PUBLIC")
	if err := migrations.Grant(t.Context(), url, migrations.API, nil); err != nil {
		t.Fatal(err)
	}
	for role, statements := range map[string][]string{
		"jobweaver_notify": {
			"SELECT FROM jobs", "TRUNCATE deliveries", "CREATE TABLE mine ()", "SELECT nextval('order_numbers')",
		},
		"jobweaver_bulk": {"SELECT payload FROM jobs", "SELECT * FROM jobs", "SELECT FROM api_keys"},
	} {
		exec(t, conn, "SET ROLE "+role)
		for _, sql := range statements {
			if _, err := conn.Exec(t.Context(), sql); !isDenied(err) {
				t.Errorf("%s may %s: %v", role, sql, err)
			}
		}
		exec(t, conn, "RESET ROLE")
	}
}

// No role can change the audit log, not even the gateway's, and only the gateway's reads a key's hash.
func TestTheAuditLogIsOnlyAddedToAndKeysAreTheGatewaysOnly(t *testing.T) {
	t.Parallel()
	conn := connect(t, pgtest.Database(t, migrations.API))
	for _, role := range migrations.API.Roles() {
		exec(t, conn, "SET ROLE "+role)
		forbidden := []string{
			"UPDATE audit_log SET actor = ''", "UPDATE audit_log SET at = now() WHERE false", "TRUNCATE audit_log", "DELETE FROM audit_log",
			"SELECT FROM audit_log FOR UPDATE", "ALTER TABLE audit_log ADD x text", "DROP TABLE audit_log",
			"CREATE RULE quiet AS ON INSERT TO audit_log DO INSTEAD NOTHING", "SELECT setval('audit_log_audit_id_seq', 1)",
			"INSERT INTO audit_log OVERRIDING SYSTEM VALUE SELECT * FROM audit_log ON CONFLICT (audit_id) DO UPDATE SET actor = ''",
			"DELETE FROM api_keys", "TRUNCATE api_keys", "UPDATE api_keys SET secret_hash = ''", "UPDATE api_keys SET roles = '{admin}'",
		}
		if role != "jobweaver_gateway" {
			forbidden = append(forbidden, "SELECT FROM api_keys", "INSERT INTO audit_log DEFAULT VALUES")
		}
		for _, sql := range forbidden {
			if _, err := conn.Exec(t.Context(), sql); !isDenied(err) {
				t.Errorf("%s may %s: %v", role, sql, err)
			}
		}
		exec(t, conn, "RESET ROLE")
	}
}

// A role under an attacker's control leaves the last 30 days as they are, whatever age it passes, and enters
// nothing under another number or date.
func TestNoRoleEmptiesOrBackdatesTheAuditLog(t *testing.T) {
	t.Parallel()
	conn := connect(t, pgtest.Database(t, migrations.API))
	const insert = "INSERT INTO audit_log (%sactor, action, owner_id, remote_addr, user_agent, trace_id) %s" +
		"SELECT %s'a', 'job.read', '', '', '', gen_random_uuid()"
	exec(t, conn, fmt.Sprintf(insert, "at, ", "", "now() - days * interval '1 day', ")+" FROM unnest('{40, 31, 29, 0}'::int[]) AS days")
	for _, role := range migrations.API.Roles() {
		exec(t, conn, "SET ROLE "+role)
		forbidden := []string{
			"DELETE FROM audit_log", "TRUNCATE audit_log",
			"SELECT audit_forget('0', 9)", "SELECT audit_forget('29 days', 9)", "SELECT audit_forget(NULL, 9)",
			"SELECT audit_forget('-1 day', 9)",
			"SELECT audit_forget('-12000 months 360030 days', 9)", // compares as 30 days, and is years ahead
			fmt.Sprintf(insert, "at, ", "", "'epoch', "), fmt.Sprintf(insert, "audit_id, ", "OVERRIDING SYSTEM VALUE ", "9, "),
			"ALTER FUNCTION audit_forget SECURITY INVOKER", "CREATE OR REPLACE FUNCTION public.audit_forget(interval, integer) " +
				"RETURNS bigint LANGUAGE sql AS 'SELECT 1'",
		}
		if role != "jobweaver_projection" {
			forbidden = append(forbidden, "SELECT audit_forget('1 year', 9)")
		}
		for _, sql := range forbidden {
			if _, err := conn.Exec(t.Context(), sql); !isDenied(err) {
				t.Errorf("%s may %s: %v", role, sql, err)
			}
		}
		exec(t, conn, "RESET ROLE")
	}
	exec(t, conn, "SET ROLE jobweaver_projection")
	var forgotten, left int
	if err := conn.QueryRow(t.Context(), "SELECT audit_forget('720 hours', 9)").Scan(&forgotten); err != nil || forgotten != 2 {
		t.Errorf("forgot %d, %v; want what is 40 and 31 days old", forgotten, err)
	}
	exec(t, conn, "RESET ROLE")
	if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM audit_log").Scan(&left); err != nil || left != 2 {
		t.Errorf("%d entries are left, %v", left, err)
	}
}

// Keys that are made and revoked in a loop must not fill the table: they are deleted after 30 days, by the gateway
// only. A bootstrap key stays.
func TestKeysGoWhenTheyEndedThirtyDaysAgo(t *testing.T) {
	t.Parallel()
	conn := connect(t, pgtest.Database(t, migrations.API))
	exec(t, conn, `INSERT INTO api_keys (key_id, owner_id, name, roles, secret_hash, created_by, expires_at, revoked_at)
		SELECT id, owner, 'n', '{read}', sha256(''), made_by, now() - expired * interval '1 day', now() - revoked * interval '1 day'
		FROM (VALUES ('revoked', 'acme', 'key:a', NULL, 31), ('expired', 'acme', 'key:a', 31, NULL), ('both', 'acme', 'key:a', 31, 1),
			('late', 'acme', 'key:a', 29, 29), ('lives', 'acme', 'key:a', -9, NULL), ('ever', 'acme', 'key:a', NULL, NULL),
			('others', 'other', 'key:a', 99, 99), ('first', 'acme', 'bootstrap', NULL, 99)
		) AS keys (id, owner, made_by, expired, revoked)`)
	for _, role := range migrations.API.Roles() {
		exec(t, conn, "SET ROLE "+role)
		_, err := conn.Exec(t.Context(), "SELECT api_keys_forget('acme')")
		if role == "jobweaver_gateway" && err != nil || role != "jobweaver_gateway" && !isDenied(err) {
			t.Errorf("%s: %v", role, err)
		}
		exec(t, conn, "RESET ROLE")
	}
	var left string
	if err := conn.QueryRow(t.Context(), "SELECT string_agg(key_id, ' ' ORDER BY key_id) FROM api_keys").Scan(&left); err != nil {
		t.Fatal(err)
	}
	if left != "ever first late lives others" {
		t.Errorf("left %s", left)
	}
}

func TestPasswordsAreReadFromFilesThatAreNamedAsRoles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := migrations.ReadPasswords([]string{dir}, migrations.API.Roles()); err == nil {
		t.Error("a folder without any was taken")
	}
	for name, text := range map[string]string{"jobweaver_cron": "secret\n", "jobweaver_": "x", "README": "y"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := migrations.ReadPasswords([]string{t.TempDir(), dir}, migrations.API.Roles())
	if err != nil || len(got) != 1 || got["jobweaver_cron"] != "secret" {
		t.Errorf("got %v, %v", got, err)
	}
	url := pgtest.Database(t, migrations.API)
	for _, bad := range []string{"", "ä", "a\nb"} {
		err := migrations.Grant(t.Context(), url, migrations.API, map[string]string{"jobweaver_cron": bad})
		if err == nil || bad != "" && strings.Contains(err.Error(), bad) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func isDenied(err error) bool {
	var refused *pgconn.PgError
	// 42501: insufficient privilege.
	return errors.As(err, &refused) && refused.Code == "42501"
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

func exec(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}
