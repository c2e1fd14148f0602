package migrations_test

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

// bounded are the tables that do not grow with jobs: every other table may have millions of rows.
var bounded = []string{
	"controls", "workers", "queues", "dispatch_state", "job_counts", "owner_job_counts", "api_keys", "goose_db_version",
}

// A session that waits for such a lock waits for as long as a table is read, and the statements of all functions wait
// behind it: a second for a million jobs.
func TestNoMigrationHoldsALockWhileItReadsATableThatGrows(t *testing.T) {
	t.Parallel()
	for _, set := range []migrations.Set{migrations.API, migrations.Scheduler, migrations.Worker} {
		t.Run(set.Name, func(t *testing.T) {
			t.Parallel()
			held := held(t, set.FS)
			names, err := fs.Glob(set.FS, "*.sql")
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range names {
				if held[name] != "" {
					t.Errorf("%s/%s %s: build an index CONCURRENTLY, add a constraint NOT VALID and validate it in a migration "+
						"of its own, and add a column in place of a change of its type", set.Name, name, held[name])
				}
			}
		})
	}
}

func TestEachKindOfMigrationThatHoldsALockForLongIsFound(t *testing.T) {
	t.Parallel()
	const noTransaction = "-- +goose NO TRANSACTION\n"
	for name, c := range map[string]struct {
		sql  string
		want string // empty: it is harmless
	}{
		"an index":                       {"CREATE INDEX i ON t (n);", "ShareLock"},
		"an index after a column":        {"ALTER TABLE t ADD c int;\nCREATE INDEX i ON t (n);", "AccessExclusiveLock"},
		"an index on another table":      {"ALTER TABLE t ADD c int;\nCREATE INDEX i ON other (n);", "reads other"},
		"an index without a transaction": {noTransaction + "CREATE INDEX i ON t (n);", "ShareLock"},
		"a unique constraint":            {"ALTER TABLE t ADD UNIQUE (n);", "AccessExclusiveLock"},
		"a check":                        {"ALTER TABLE t ADD CHECK (n > 0);", "AccessExclusiveLock"},
		"a column with a check":          {"ALTER TABLE t ADD c int CHECK (c > 0);", "AccessExclusiveLock"},
		"a foreign key":                  {"ALTER TABLE t ADD FOREIGN KEY (n) REFERENCES other;", "ShareRowExclusiveLock"},
		"not null":                       {"ALTER TABLE t ALTER n SET NOT NULL;", "AccessExclusiveLock"},
		"another type":                   {"ALTER TABLE t ALTER n TYPE bigint;", "AccessExclusiveLock"},
		"a default that is not constant": {"ALTER TABLE t ADD c uuid DEFAULT gen_random_uuid();", "AccessExclusiveLock"},
		"a validation beside a change":   {"ALTER TABLE t ADD CONSTRAINT k CHECK (n > 0) NOT VALID;\nALTER TABLE t VALIDATE CONSTRAINT k;", "AccessExclusiveLock"},
		"a change of all rows":           {"UPDATE t SET n = 1;", "RowExclusiveLock"},
		"a copy of the table":            {noTransaction + "VACUUM FULL t;", "rewrites t"},
		"within a block":                 {"-- +goose StatementBegin\nDO $$ BEGIN\nCREATE INDEX i ON t (n);\nEND $$;\n-- +goose StatementEnd", "ShareLock"},

		"an index, concurrently":  {noTransaction + "CREATE INDEX CONCURRENTLY i ON t (n);", ""},
		"a column":                {"ALTER TABLE t ADD c int, ADD d text NOT NULL DEFAULT '';", ""},
		"a check, not validated":  {"ALTER TABLE t ADD CONSTRAINT k CHECK (n > 0) NOT VALID;", ""},
		"a new table":             {"CREATE TABLE u (n int PRIMARY KEY CHECK (n > 0));\nCREATE INDEX i ON u (n);", ""},
		"a table that is bounded": {"CREATE INDEX i ON workers (n);\nALTER TABLE workers ADD CHECK (n > 0);", ""},
		"a wider text":            {"ALTER TABLE t ALTER s TYPE text;", ""},
		"a trigger":               {"CREATE TRIGGER r BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger();", ""},
		"a validation in steps": {noTransaction + "ALTER TABLE t ADD CONSTRAINT k CHECK (n IS NOT NULL) NOT VALID;\n" +
			"ALTER TABLE t VALIDATE CONSTRAINT k;\nALTER TABLE t ALTER n SET NOT NULL;", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			head := ""
			sql, without := strings.CutPrefix(c.sql, noTransaction)
			if without {
				head = noTransaction
			}
			got := held(t, fstest.MapFS{
				"00001_tables.sql": {Data: []byte("-- +goose Up\nCREATE TABLE t (n int, s varchar(9));\n" +
					"CREATE TABLE other (n int PRIMARY KEY);\nCREATE TABLE workers (n int);\n")},
				"00002_change.sql": {Data: []byte(head + "-- +goose Up\n" + sql + "\n-- +goose Down\nDROP TABLE t;\n")},
			})
			if found := got["00002_change.sql"]; got["00001_tables.sql"] != "" || (found == "") != (c.want == "") ||
				!strings.Contains(found, c.want) {
				t.Errorf("found %q, want %q", found, c.want)
			}
		})
	}
}

// held applies migrations to an empty database, one after another, and returns for each what it does to a table that
// was there before and grows: which lock it holds while it reads which table. It needs no rows: the server counts the
// scans of an empty table as well.
func held(t *testing.T, files fs.FS) map[string]string {
	t.Helper()
	conn := connect(t, pgtest.Empty(t))
	names, err := fs.Glob(files, "*.sql") // sorted
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	all := map[string]string{}
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			t.Fatal(err)
		}
		steps := statements(string(text))
		if !strings.HasPrefix(string(text), "-- +goose NO TRANSACTION") {
			steps = []string{strings.Join(steps, "\n")}
		}
		before, err := tables(t.Context(), conn)
		if err != nil {
			t.Fatal(err)
		}
		for _, step := range steps {
			found, err := apply(t.Context(), conn, before, step)
			if err != nil {
				t.Fatalf("%s: %v\n%s", name, err, step)
			}
			if all[name] == "" {
				all[name] = found
			}
		}
	}
	return all
}

// statements splits the first part of a migration as goose does.
func statements(migration string) (all []string) {
	_, up, _ := strings.Cut(migration, "-- +goose Up\n")
	up, _, _ = strings.Cut(up, "-- +goose Down")
	var one strings.Builder
	block := false
	for line := range strings.Lines(up) {
		switch code, _, _ := strings.Cut(line, "--"); {
		case strings.HasPrefix(line, "-- +goose StatementBegin"):
			block = true
		case strings.HasPrefix(line, "-- +goose StatementEnd"):
			block = false
		default:
			one.WriteString(line)
			if block || !strings.HasSuffix(strings.TrimSpace(code), ";") {
				continue
			}
		}
		if !block && strings.TrimSpace(one.String()) != "" {
			all = append(all, one.String())
			one.Reset()
		}
	}
	return append(all, one.String())
}

// tables returns the files of the tables that grow.
func tables(ctx context.Context, conn *pgx.Conn) (map[uint32]uint32, error) {
	rows, err := conn.Query(ctx, `SELECT oid, relfilenode FROM pg_class
		WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relname <> ALL ($1)`, bounded)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	files := map[uint32]uint32{}
	for rows.Next() {
		var table, file uint32
		if err := rows.Scan(&table, &file); err != nil {
			return nil, err
		}
		files[table] = file
	}
	return files, rows.Err()
}

// apply applies statements in one transaction, if the server allows that, and returns what they hold and read.
func apply(ctx context.Context, conn *pgx.Conn, before map[uint32]uint32, sql string) (found string, err error) {
	tx, err := conn.Begin(ctx)
	if err != nil {
		return "", err
	}
	defer func() { _ = tx.Rollback(ctx) }()
	scans, err := scans(ctx, tx, before)
	if err != nil {
		return "", err
	}
	_, err = conn.PgConn().Exec(ctx, sql).ReadAll()
	var refused *pgconn.PgError
	if errors.As(err, &refused) && slices.Contains([]string{"25001", "2D000"}, refused.Code) {
		if err := tx.Rollback(ctx); err != nil { // CONCURRENTLY, a VACUUM, or a block with commits of its own
			return "", err
		}
		return applyAlone(ctx, conn, before, sql)
	}
	if err != nil {
		return "", err
	}
	if found, err = heldNow(ctx, tx, before, scans); err != nil {
		return "", err
	}
	return found, tx.Commit(ctx)
}

func applyAlone(ctx context.Context, conn *pgx.Conn, before map[uint32]uint32, sql string) (found string, err error) {
	if _, err := conn.PgConn().Exec(ctx, sql).ReadAll(); err != nil {
		return "", err
	}
	after, err := tables(ctx, conn)
	if err != nil {
		return "", err
	}
	for table, file := range before {
		if now, there := after[table]; there && now != file {
			err = conn.QueryRow(ctx, "SELECT 'rewrites ' || $1::oid::regclass", table).Scan(&found)
		}
	}
	return found, err
}

// scans returns how often the session has scanned each table, as far as it has not reported that yet: it does so
// between two transactions.
func scans(ctx context.Context, tx pgx.Tx, of map[uint32]uint32) (map[uint32]int, error) {
	rows, err := tx.Query(ctx, "SELECT relid, seq_scan + coalesce(idx_scan, 0) FROM pg_stat_xact_user_tables")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	counts := map[uint32]int{}
	for rows.Next() {
		var table uint32
		var count int
		if err := rows.Scan(&table, &count); err != nil {
			return nil, err
		}
		if _, grows := of[table]; grows {
			counts[table] = count
		}
	}
	return counts, rows.Err()
}

// heldNow returns the strongest lock for which writers wait that a transaction holds on a table, if it has also read a
// table.
func heldNow(ctx context.Context, tx pgx.Tx, before map[uint32]uint32, earlier map[uint32]int) (string, error) {
	now, err := scans(ctx, tx, before)
	if err != nil {
		return "", err
	}
	for table, count := range now {
		if count == earlier[table] {
			continue
		}
		var found string
		err := tx.QueryRow(ctx, `
			SELECT format('holds %s on %s while it reads %s', mode, relation::regclass, $1::oid::regclass)
			FROM pg_locks
			WHERE pid = pg_backend_pid() AND relation = ANY ($2)
			  AND mode IN ('RowExclusiveLock', 'ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
			ORDER BY array_position('{AccessExclusiveLock,ExclusiveLock,ShareRowExclusiveLock,ShareLock}', mode)
			LIMIT 1`, table, slices.Collect(maps.Keys(before))).Scan(&found)
		if err == nil || !errors.Is(err, pgx.ErrNoRows) {
			return found, err
		}
	}
	return "", nil
}
