package pgpool_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

// As sqlc writes them.
const (
	addOne  = "-- name: Add :exec\nINSERT INTO t VALUES ($1)"
	sumAll  = "-- name: Sum :one\nSELECT coalesce(sum(n), 0)::int FROM t"
	listAll = "-- name: List :many\nSELECT n FROM t ORDER BY n"
	raised  = "-- name: Raise :execrows\nUPDATE t SET n = n + 5000"
)

// journal notes what is sent at once.
type journal struct{ flights []string }

func (j *journal) TraceQueryStart(ctx context.Context, _ *pgx.Conn, start pgx.TraceQueryStartData) context.Context {
	j.flights = append(j.flights, short(start.SQL))
	return ctx
}

func (*journal) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (j *journal) TraceBatchStart(ctx context.Context, _ *pgx.Conn, start pgx.TraceBatchStartData) context.Context {
	names := make([]string, len(start.Batch.QueuedQueries))
	for i, query := range start.Batch.QueuedQueries {
		names[i] = short(query.SQL)
	}
	j.flights = append(j.flights, strings.Join(names, " "))
	return ctx
}

func (*journal) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (*journal) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}

func short(sql string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(sql, "-- name: "), " ")
	return name
}

// flown gives a table t of numbers, and the journal of its pool.
func flown(t *testing.T) (*pgxpool.Pool, *journal) {
	t.Helper()
	j := &journal{}
	pool := open(t, pgtest.Database(t, migrations.API), func(cfg *pgxpool.Config) {
		cfg.ConnConfig.Tracer, cfg.MaxConns = j, 1
	})
	exec(t, pool, "CREATE TABLE t (n int PRIMARY KEY)")
	j.flights = nil
	return pool, j
}

func add(t *testing.T, db pgpool.DB, n int) {
	t.Helper()
	if _, err := db.Exec(t.Context(), addOne, n); err != nil {
		t.Error(err)
	}
}

func sum(ctx context.Context, db pgpool.DB) (n int, err error) {
	err = db.QueryRow(ctx, sumAll).Scan(&n)
	return n, err
}

func list(ctx context.Context, db pgpool.DB) ([]int, error) {
	rows, err := db.Query(ctx, listAll)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int])
}

func TestATransactionTakesFewFlights(t *testing.T) {
	t.Parallel()
	pool, j := flown(t)
	ahead := func(db pgpool.DB) {
		_, _ = sum(t.Context(), db)
		_, _ = list(t.Context(), db)
	}
	for name, c := range map[string]struct {
		ahead func(pgpool.DB)
		body  func(db pgpool.DB) error
		want  []string
	}{
		"nothing": {body: func(pgpool.DB) error { return nil }},
		"what returns nothing": {
			body: func(db pgpool.DB) error { add(t, db, 3); add(t, db, 4); return nil },
			want: []string{"begin Add Add commit"},
		},
		"a question after it": {
			body: func(db pgpool.DB) error {
				add(t, db, 3)
				n, err := sum(t.Context(), db)
				if n != 6 {
					t.Errorf("sum %d", n)
				}
				return err
			},
			want: []string{"begin Add Sum", "commit"},
		},
		"what was asked ahead": {
			ahead: ahead,
			body: func(db pgpool.DB) error {
				_, err := sum(t.Context(), db)
				all, err2 := list(t.Context(), db)
				if len(all) == 0 {
					t.Error("no list")
				}
				add(t, db, 10+len(all))
				return errors.Join(err, err2)
			},
			want: []string{"begin Sum List", "Add commit"},
		},
		"something in between": {
			ahead: ahead,
			body: func(db pgpool.DB) error {
				_, err := sum(t.Context(), db)
				add(t, db, 100)
				all, err2 := list(t.Context(), db)
				if !slices.Contains(all, 100) {
					t.Errorf("asked before the insert: %v", all)
				}
				return errors.Join(err, err2)
			},
			want: []string{"begin Sum List", "Add List", "commit"},
		},
		"something else first": {
			ahead: ahead,
			body:  func(db pgpool.DB) error { _, err := list(t.Context(), db); return err },
			want:  []string{"begin List", "commit"},
		},
		"how many rows": {
			body: func(db pgpool.DB) error {
				add(t, db, 1000)
				tag, err := db.Exec(t.Context(), raised)
				if tag.RowsAffected() == 0 {
					t.Error("no rows")
				}
				return errors.Join(err, errors.New("undo"))
			},
			want: []string{"begin Add Raise", "rollback"},
		},
	} {
		exec(t, pool, "TRUNCATE t; INSERT INTO t VALUES (1), (2)")
		j.flights = nil
		err := pgpool.TxInFlights(t.Context(), pool, c.ahead, c.body)
		if err != nil && err.Error() != "undo" {
			t.Errorf("%s: %v", name, err)
		}
		if !slices.Equal(j.flights, c.want) {
			t.Errorf("%s: flights %q, want %q", name, j.flights, c.want)
		}
	}
}

func TestWhatFailsInAFlightUndoesTheTransaction(t *testing.T) {
	t.Parallel()
	pool, _ := flown(t)
	exec(t, pool, "INSERT INTO t VALUES (1)")
	ctx := t.Context()
	boom := errors.New("boom")
	for name, c := range map[string]struct {
		body    func(db pgpool.DB) error
		invalid bool
	}{
		"at the commit":      {func(db pgpool.DB) error { add(t, db, 7); add(t, db, 1); return nil }, true},
		"at the next":        {func(db pgpool.DB) error { add(t, db, 7); add(t, db, 1); _, err := list(ctx, db); return err }, true},
		"where it is hidden": {func(db pgpool.DB) error { add(t, db, 7); add(t, db, 1); _, _ = sum(ctx, db); return nil }, true},
		"an argument": {func(db pgpool.DB) error {
			add(t, db, 7)
			_, err := db.Exec(ctx, addOne, 1<<40)
			return err
		}, true},
		"the body": {func(db pgpool.DB) error { add(t, db, 7); _, _ = sum(ctx, db); return boom }, false},
	} {
		err := pgpool.TxInFlights(ctx, pool, nil, c.body)
		if err == nil || errors.Is(err, jobevent.ErrInvalid) != c.invalid {
			t.Errorf("%s: %v", name, err)
		}
		if all, err := list(ctx, pool); err != nil || !slices.Equal(all, []int{1}) { // on the only connection
			t.Errorf("%s: left %v, %v", name, all, err)
		}
	}
	func() {
		defer func() { _ = recover() }()
		_ = pgpool.TxInFlights(ctx, pool, nil, func(db pgpool.DB) error {
			add(t, db, 7)
			rows, err := db.Query(ctx, listAll)
			if err != nil || !rows.Next() {
				t.Errorf("no rows: %v", err)
			}
			panic("with rows open")
		})
	}()
	if all, err := list(ctx, pool); err != nil || !slices.Equal(all, []int{1}) {
		t.Errorf("after a panic: %v, %v", all, err)
	}
}

func TestAFlightThatHasToGiveWayFliesAgain(t *testing.T) {
	t.Parallel()
	pool, _ := flown(t)
	tries := 0
	err := pgpool.TxInFlights(t.Context(), pool, nil, func(db pgpool.DB) error {
		tries++
		add(t, db, tries)
		if tries == 1 {
			_, err := db.Exec(t.Context(), "-- name: Conflict :exec\nDO $$ BEGIN RAISE SQLSTATE '40P01'; END $$")
			return err
		}
		return nil
	})
	all, errList := list(t.Context(), pool)
	if err != nil || errList != nil || !slices.Equal(all, []int{2}) {
		t.Errorf("%v after %d tries, %v, %v", all, tries, err, errList)
	}
}
