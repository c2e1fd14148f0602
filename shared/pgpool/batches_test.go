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

const (
	addOne  = "-- name: Add :exec\nINSERT INTO t VALUES ($1)"
	sumAll  = "-- name: Sum :one\nSELECT coalesce(sum(n), 0)::int FROM t"
	listAll = "-- name: List :many\nSELECT n FROM t ORDER BY n"
)

// journal notes which statements travel together.
type journal struct{ trips []string }

func (j *journal) TraceQueryStart(ctx context.Context, _ *pgx.Conn, start pgx.TraceQueryStartData) context.Context {
	j.trips = append(j.trips, short(start.SQL))
	return ctx
}

func (*journal) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (j *journal) TraceBatchStart(ctx context.Context, _ *pgx.Conn, start pgx.TraceBatchStartData) context.Context {
	names := make([]string, len(start.Batch.QueuedQueries))
	for i, query := range start.Batch.QueuedQueries {
		names[i] = short(query.SQL)
	}
	j.trips = append(j.trips, strings.Join(names, " "))
	return ctx
}

func (*journal) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (*journal) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}

func short(sql string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(sql, "-- name: "), " ")
	return name
}

// batched returns a pool of one connection with a table t of numbers, and its journal.
func batched(t *testing.T) (*pgxpool.Pool, *journal) {
	t.Helper()
	j := &journal{}
	pool := open(t, pgtest.Database(t, migrations.API), func(cfg *pgxpool.Config) {
		cfg.ConnConfig.Tracer, cfg.MaxConns = j, 1
	})
	exec(t, pool, "CREATE TABLE t (n int PRIMARY KEY)")
	j.trips = nil
	return pool, j
}

func add(t *testing.T, db pgpool.DB, n int) {
	t.Helper()
	if _, err := db.Exec(t.Context(), addOne, n); err != nil {
		t.Error(err)
	}
}

func list(ctx context.Context, db pgpool.DB) ([]int, error) {
	rows, err := db.Query(ctx, listAll)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int])
}

func nothing(*pgx.Batch) {}

func TestATransactionInBatchesTakesTheRoundTripsThatItNames(t *testing.T) {
	t.Parallel()
	pool, j := batched(t)
	ctx := t.Context()
	var sum int
	var all []int
	ask := func(b *pgx.Batch) {
		pgpool.QueueOne(b, &sum, pgx.RowTo[int], sumAll)
		pgpool.QueueMany(b, &all, pgx.RowTo[int], listAll)
	}
	for name, c := range map[string]struct {
		first func(*pgx.Batch)
		body  func(now pgpool.DB, later *pgpool.Later) error
		want  []string
	}{
		"nothing": {nothing, func(pgpool.DB, *pgpool.Later) error { return nil }, []string{"begin", "commit"}},
		"statements that wait for the commit": {nothing, func(_ pgpool.DB, later *pgpool.Later) error {
			add(t, later, 3)
			add(t, later, 4)
			return nil
		}, []string{"begin", "Add Add commit"}},
		"answers that came with begin": {ask, func(_ pgpool.DB, later *pgpool.Later) error {
			if sum != 3 || !slices.Equal(all, []int{1, 2}) {
				t.Errorf("sum %d of %v", sum, all)
			}
			add(t, later, 5)
			return nil
		}, []string{"begin Sum List", "Add commit"}},
		"a statement that has to see others": {nothing, func(now pgpool.DB, later *pgpool.Later) error {
			add(t, later, 6)
			err := later.Flush(ctx)
			all, err2 := list(ctx, now)
			if !slices.Contains(all, 6) {
				t.Errorf("asked before the insert: %v", all)
			}
			return errors.Join(err, err2)
		}, []string{"begin", "Add", "List", "commit"}},
	} {
		exec(t, pool, "TRUNCATE t; INSERT INTO t VALUES (1), (2)")
		j.trips = nil
		if err := pgpool.TxInBatches(ctx, pool, c.first, c.body); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !slices.Equal(j.trips, c.want) {
			t.Errorf("%s: round trips %q, want %q", name, j.trips, c.want)
		}
	}
}

func TestAnErrorInABatchUndoesTheTransaction(t *testing.T) {
	t.Parallel()
	pool, _ := batched(t)
	exec(t, pool, "INSERT INTO t VALUES (1)")
	ctx := t.Context()
	for name, c := range map[string]struct {
		first   func(*pgx.Batch)
		body    func(now pgpool.DB, later *pgpool.Later) error
		invalid bool
	}{
		"with begin": {func(b *pgx.Batch) { b.Queue(addOne, 7); b.Queue(addOne, 1) }, func(pgpool.DB, *pgpool.Later) error {
			t.Error("the body ran")
			return nil
		}, true},
		"with commit": {nothing, func(_ pgpool.DB, later *pgpool.Later) error {
			add(t, later, 7)
			add(t, later, 1)
			return nil
		}, true},
		"when flushed": {nothing, func(_ pgpool.DB, later *pgpool.Later) error {
			add(t, later, 7)
			add(t, later, 1)
			return later.Flush(ctx)
		}, true},
		"hidden by the body": {nothing, func(now pgpool.DB, _ *pgpool.Later) error {
			add(t, now, 7)
			_, _ = now.Exec(ctx, addOne, 1)
			return nil
		}, false},
		"an argument": {nothing, func(_ pgpool.DB, later *pgpool.Later) error {
			add(t, later, 7)
			add(t, later, 1<<40)
			return nil
		}, true},
		"a question that nothing would read": {nothing, func(_ pgpool.DB, later *pgpool.Later) error {
			add(t, later, 7)
			_, err := list(ctx, later)
			return errors.Join(err, later.QueryRow(ctx, sumAll).Scan())
		}, false},
		"of the body": {nothing, func(now pgpool.DB, _ *pgpool.Later) error {
			add(t, now, 7)
			return errors.New("boom")
		}, false},
	} {
		err := pgpool.TxInBatches(ctx, pool, c.first, c.body)
		if err == nil || errors.Is(err, jobevent.ErrInvalid) != c.invalid {
			t.Errorf("%s: %v", name, err)
		}
		if all, err := list(ctx, pool); err != nil || !slices.Equal(all, []int{1}) { // on the only connection
			t.Errorf("%s: left %v, %v", name, all, err)
		}
	}
	func() {
		defer func() { _ = recover() }()
		_ = pgpool.TxInBatches(ctx, pool, nothing, func(now pgpool.DB, _ *pgpool.Later) error {
			add(t, now, 7)
			panic("in a transaction")
		})
	}()
	if all, err := list(ctx, pool); err != nil || !slices.Equal(all, []int{1}) {
		t.Errorf("after a panic: %v, %v", all, err)
	}
}

func TestATransactionInBatchesThatConflictsRunsAgain(t *testing.T) {
	t.Parallel()
	pool, _ := batched(t)
	tries, seen := 0, []int(nil)
	err := pgpool.TxInBatches(t.Context(), pool, func(b *pgx.Batch) {
		pgpool.QueueMany(b, &seen, pgx.RowTo[int], listAll)
	}, func(now pgpool.DB, later *pgpool.Later) error {
		tries++
		add(t, later, tries)
		if len(seen) > 0 {
			t.Errorf("try %d saw %v", tries, seen)
		}
		if tries == 1 {
			_, err := now.Exec(t.Context(), "DO $$ BEGIN RAISE SQLSTATE '40P01'; END $$")
			return err
		}
		return nil
	})
	all, errList := list(t.Context(), pool)
	if err != nil || errList != nil || !slices.Equal(all, []int{2}) {
		t.Errorf("%v after %d tries, %v, %v", all, tries, err, errList)
	}
}
