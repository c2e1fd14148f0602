package pgpool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// DB is what sqlc's queries run on.
type DB interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// TxInFlights is Tx for sqlc's queries, in as few round trips as possible. BEGIN travels with the first statement; a
// statement that returns nothing (:exec) travels with the next one that returns rows, or with COMMIT. Each round trip
// wakes both processes, which costs more than most statements, and a lock is held during all later round trips.
//
// ahead may call the queries that fn will call first, in that order and with the same arguments. They all travel with
// BEGIN, and fn gets their results. If fn calls another query in between, the remaining ones run a second time when fn
// calls them. So every query of ahead but the first must allow that. An error of an :exec statement is returned by the
// next query, or by the commit.
func TxInFlights(ctx context.Context, pool *pgxpool.Pool, ahead func(DB), fn func(DB) error) error {
	var first recorder
	if ahead != nil {
		ahead(&first)
	}
	return repeated(ctx, func() error { return inFlights(ctx, pool, first.statements, fn) })
}

func inFlights(ctx context.Context, pool *pgxpool.Pool, first []statement, fn func(DB) error) error {
	pooled, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer pooled.Release()
	f := &flights{conn: pooled.Conn(), waiting: []statement{{sql: "begin"}}, ahead: first}
	defer func() { // also after a panic
		_ = f.land() // fn or commit has returned its error
		if f.conn.PgConn().TxStatus() != 'I' {
			_, _ = f.conn.Exec(ctx, "rollback") // if it fails, the pool closes the connection
		}
	}()
	if err := fn(f); err != nil {
		return err
	}
	return f.commit(ctx)
}

// statement is an SQL text with its arguments.
type statement struct {
	sql  string
	args []any
}

// returnsNothing reports whether the statement is an :exec of sqlc.
func (s statement) returnsNothing() bool {
	head, _, _ := strings.Cut(s.sql, "\n")
	return strings.HasPrefix(head, "-- name: ") && strings.HasSuffix(head, " :exec")
}

func (s statement) failed(err error) error {
	name, _, _ := strings.Cut(strings.TrimPrefix(s.sql, "-- name: "), " ")
	return fmt.Errorf("%s: %w", name, err)
}

// flights is the DB of one transaction. A flight is a batch of statements that are sent together.
type flights struct {
	conn    *pgx.Conn
	waiting []statement      // :exec statements, and BEGIN, that the next flight begins with
	ahead   []statement      // before the first flight: the rest of it; afterwards: those with unread results
	landing pgx.BatchResults // unread results of the last flight; nil: none
}

// send sends the waiting statements, and then after them, in one flight. It reads the results of the waiting ones only.
func (f *flights) send(ctx context.Context, then ...statement) error {
	if err := f.land(); err != nil {
		return err
	}
	batch, waiting := &pgx.Batch{}, f.waiting
	f.waiting = nil
	for _, s := range slices.Concat(waiting, then) {
		batch.Queue(s.sql, s.args...)
	}
	f.landing = f.conn.SendBatch(ctx, batch)
	for _, s := range waiting {
		if _, err := f.landing.Exec(); err != nil {
			return s.failed(err)
		}
	}
	return nil
}

// land discards the unread results, so that the connection is ready for another flight.
func (f *flights) land() error {
	if f.landing == nil {
		return nil
	}
	landing := f.landing
	f.landing, f.ahead = nil, nil
	return landing.Close()
}

// ask makes the result of s the next one to read from landing. It sends s, unless the first flight had it.
func (f *flights) ask(ctx context.Context, s statement) error {
	isAhead := len(f.ahead) > 0 && f.ahead[0].sql == s.sql
	switch {
	case isAhead && f.landing == nil: // the first flight
		err := f.send(ctx, f.ahead...)
		f.ahead = f.ahead[1:]
		return err
	case isAhead && len(f.waiting) == 0:
		f.ahead = f.ahead[1:]
		return nil
	default:
		f.ahead = nil
		return f.send(ctx, s)
	}
}

// Exec is sqlc's for a statement that returns nothing, or a number of rows.
func (f *flights) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	s := statement{sql, args}
	if s.returnsNothing() {
		f.waiting = append(f.waiting, s)
		return pgconn.CommandTag{}, nil
	}
	if err := f.ask(ctx, s); err != nil {
		return pgconn.CommandTag{}, err
	}
	return f.landing.Exec()
}

// Query is sqlc's for many rows.
func (f *flights) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if err := f.ask(ctx, statement{sql, args}); err != nil {
		return nil, err
	}
	return f.landing.Query()
}

// QueryRow is sqlc's for one row.
func (f *flights) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if err := f.ask(ctx, statement{sql, args}); err != nil {
		return noRow{err}
	}
	return f.landing.QueryRow()
}

// commit sends the waiting statements with COMMIT. It sends nothing if fn has run no statement.
func (f *flights) commit(ctx context.Context) error {
	if len(f.waiting) == 1 && f.waiting[0].sql == "begin" {
		return nil
	}
	if err := f.send(ctx, statement{sql: "commit"}); err != nil {
		return err
	}
	tag, err := f.landing.Exec()
	if landed := f.land(); err == nil {
		err = landed
	}
	if err == nil && tag.String() == "ROLLBACK" {
		err = pgx.ErrTxCommitRollback
	}
	return err
}

type noRow struct{ err error }

// Scan returns the error.
func (r noRow) Scan(...any) error { return r.err }

// recorder records statements instead of sending them.
type recorder struct{ statements []statement }

var errRecorded = errors.New("recorded and not sent")

func (r *recorder) note(sql string, args []any) error {
	r.statements = append(r.statements, statement{sql, args})
	return errRecorded
}

// Exec records a statement.
func (r *recorder) Exec(_ context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	return pgconn.CommandTag{}, r.note(sql, args)
}

// Query records a statement.
func (r *recorder) Query(_ context.Context, sql string, args ...any) (pgx.Rows, error) {
	return nil, r.note(sql, args)
}

// QueryRow records a statement.
func (r *recorder) QueryRow(_ context.Context, sql string, args ...any) pgx.Row {
	return noRow{r.note(sql, args)}
}
