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

// TxInFlights is Tx for sqlc's queries, in as few round trips as can be: BEGIN goes with the first statement, what
// returns nothing (:exec) with the next that returns something, or with COMMIT. Each round trip costs both processes a
// wake-up, more than most statements, and a lock is held for all that come after it.
//
// ahead may call the queries that fn will call first, in that order and with the same arguments: they all go with
// BEGIN, and fn is given their answers. Where fn calls something else in between, the rest is asked once more, so only
// what may be asked twice has a place in it, but for the first. An error of a statement that returns nothing is that
// of the next one, or of the commit.
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
		_ = f.land() // what went wrong there has been told
		if f.conn.PgConn().TxStatus() != 'I' {
			_, _ = f.conn.Exec(ctx, "rollback") // where it fails, the pool closes the connection
		}
	}()
	if err := fn(f); err != nil {
		return err
	}
	return f.commit(ctx)
}

// statement is one with its arguments.
type statement struct {
	sql  string
	args []any
}

// returnsNothing says whether sqlc has been told so.
func (s statement) returnsNothing() bool {
	head, _, _ := strings.Cut(s.sql, "\n")
	return strings.HasPrefix(head, "-- name: ") && strings.HasSuffix(head, " :exec")
}

func (s statement) failed(err error) error {
	name, _, _ := strings.Cut(strings.TrimPrefix(s.sql, "-- name: "), " ")
	return fmt.Errorf("%s: %w", name, err)
}

// flights is the DB of one transaction. A flight is what is sent at once.
type flights struct {
	conn    *pgx.Conn
	waiting []statement      // that the next flight begins with
	ahead   []statement      // of the first flight, after its own; then those whose answers are still to be read
	landing pgx.BatchResults // of the last flight; nil: nothing of it is left to read
}

// send sends what waits, and what comes after it, and reads the answers of the former.
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

// land leaves the connection ready for another flight.
func (f *flights) land() error {
	if f.landing == nil {
		return nil
	}
	landing := f.landing
	f.landing, f.ahead = nil, nil
	return landing.Close()
}

// ask has a statement's answer come next.
func (f *flights) ask(ctx context.Context, s statement) error {
	isAhead := len(f.ahead) > 0 && f.ahead[0].sql == s.sql
	switch {
	case isAhead && f.landing == nil: // the first of all
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

// Exec is sqlc's for what returns nothing, or how many rows there were.
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

// commit sends what waits with COMMIT. A transaction that has asked nothing is none.
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

// Scan gives the error.
func (r noRow) Scan(...any) error { return r.err }

// recorder notes statements instead of sending them.
type recorder struct{ statements []statement }

var errRecorded = errors.New("only noted")

func (r *recorder) note(sql string, args []any) error {
	r.statements = append(r.statements, statement{sql, args})
	return errRecorded
}

// Exec notes a statement.
func (r *recorder) Exec(_ context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	return pgconn.CommandTag{}, r.note(sql, args)
}

// Query notes a statement.
func (r *recorder) Query(_ context.Context, sql string, args ...any) (pgx.Rows, error) {
	return nil, r.note(sql, args)
}

// QueryRow notes a statement.
func (r *recorder) QueryRow(_ context.Context, sql string, args ...any) pgx.Row {
	return noRow{r.note(sql, args)}
}
