// Package reportdb runs the named queries of reports, on a database that it only reads.
package reportdb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/jobweaver/jobweaver/shared/pgpool"
)

// The errors of a query.
var (
	ErrUnavailable = errors.New("the report database is unavailable") // temporary, also if the query took too long
	ErrFailed      = errors.New("the report's query failed")          // permanent
)

// ConnectionError is ErrUnavailable or ErrFailed because a connection could not be made or broke. Its text does not
// have what Cause has: the database's host and name, and the user.
type ConnectionError struct {
	kind  error
	Cause error
}

func (e *ConnectionError) Error() string { return e.kind.Error() }

// Unwrap lets errors.Is find ErrUnavailable or ErrFailed.
func (e *ConnectionError) Unwrap() error { return e.kind }

// InvalidError is an error in a request.
type InvalidError struct {
	Path   string // in the payload
	Reason string
}

func (e *InvalidError) Error() string { return e.Path + ": " + e.Reason }

func invalid(path, reason string) error { return &InvalidError{path, reason} }

// Store is the database and the queries that a report may run.
type Store struct {
	pool    *pgxpool.Pool
	queries map[string]*Query
}

// Open checks the address, but does not connect: a worker starts without the database.
func Open(url string, queries map[string]*Query) (*Store, error) {
	pool, err := pgpool.Lazy(context.Background(), url, pgpool.ApplicationName("jobweaver-report"), pgpool.ReadOnly())
	if err != nil {
		return nil, err
	}
	return &Store{pool: pool, queries: queries}, nil
}

// Close ends all connections.
func (s *Store) Close() { s.pool.Close() }

// Kind is the kind of a column's values.
type Kind uint8

// The kinds of columns. The texts of Date, DateTime and Instant have the form of ISO 8601: 2026-11-22T08:00:00Z.
const (
	Text Kind = iota
	Number
	Bool
	Date
	DateTime
	Instant
)

// Column is a column of a result.
type Column struct {
	Name string
	Kind Kind
}

// Value is a value of a row.
type Value struct {
	Text string
	Null bool
}

// Rows receives a result: first its columns, then its rows. The values of a row are invalid after Row returns.
type Rows struct {
	Columns func([]Column) error
	Row     func([]Value) error
}

// Run runs a query for the owner of a job, for no longer than ctx and atMost (0: no limit), and passes its rows on as
// they arrive. If rows returns an error, or ctx ends, Run ends and returns that error or the cause of ctx.
func (s *Store) Run(
	ctx context.Context, name, owner string, parameters map[string]json.RawMessage, atMost time.Duration, rows Rows,
) error {
	q := s.queries[name]
	if q == nil {
		return invalid("query", fmt.Sprintf("there is no query %q", name))
	}
	texts, oids, err := q.bind(owner, parameters)
	if err != nil {
		return err
	}
	// The query ends with this context, even if its result is not read to its end.
	broken, breakOff := context.WithCancel(ctx)
	defer breakOff()
	conn, err := s.pool.Acquire(broken)
	if err != nil {
		return classify(ctx, err)
	}
	defer conn.Release()
	tx, err := conn.BeginTx(broken, pgx.TxOptions{BeginQuery: fmt.Sprintf(
		"begin read only; set local statement_timeout = %d", max(atMost.Milliseconds(), 0))})
	if err != nil {
		return classify(ctx, err)
	}
	defer rollback(tx)
	result := conn.Conn().PgConn().ExecParams(broken, q.text, texts, oids, nil, nil) // parameters and results as text
	if err := read(result, rows); err != nil {
		breakOff()
		_, _ = result.Close()
		return err
	}
	hasRows := result.FieldDescriptions() != nil
	if _, err := result.Close(); err != nil {
		return classify(ctx, err)
	}
	if !hasRows {
		return fmt.Errorf("%w: it returns no rows, because it is not a select", ErrFailed)
	}
	return nil
}

// rollback ends a transaction that has changed nothing. If the connection is gone, the transaction has ended too.
func rollback(tx pgx.Tx) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = tx.Rollback(ctx)
}

// read passes the result to rows, and returns their error.
func read(result *pgconn.ResultReader, rows Rows) error {
	fields := result.FieldDescriptions()
	if fields == nil {
		return nil // Run returns the reason
	}
	columns := make([]Column, len(fields))
	for i, field := range fields {
		columns[i] = Column{field.Name, kinds[field.DataTypeOID]}
	}
	if err := rows.Columns(columns); err != nil {
		return err
	}
	values := make([]Value, len(columns))
	for result.NextRow() {
		for i, text := range result.Values() {
			values[i] = Value{valueText(columns[i].Kind, text), text == nil}
		}
		if err := rows.Row(values); err != nil {
			return err
		}
	}
	return nil
}

var kinds = map[uint32]Kind{
	pgtype.Int2OID: Number, pgtype.Int4OID: Number, pgtype.Int8OID: Number, pgtype.OIDOID: Number,
	pgtype.Float4OID: Number, pgtype.Float8OID: Number, pgtype.NumericOID: Number,
	pgtype.BoolOID: Bool, pgtype.DateOID: Date, pgtype.TimestampOID: DateTime, pgtype.TimestamptzOID: Instant,
}

// valueText returns the value in the form of all report formats. The connection's time zone is UTC.
func valueText(kind Kind, text []byte) string {
	switch kind {
	case Bool:
		if string(text) == "t" {
			return "true"
		}
		return "false"
	case DateTime, Instant:
		at := strings.Replace(string(text), " ", "T", 1)
		if day, ok := strings.CutSuffix(at, "+00"); ok {
			return day + "Z"
		}
		return at
	case Text, Number, Date:
	}
	return string(text)
}

// classify returns ErrUnavailable for a temporary error, and ErrFailed for a permanent one.
func classify(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	kind := ErrFailed
	if pgpool.IsUnavailable(err) {
		kind = ErrUnavailable
	}
	answer, refused := new(pgconn.PgError), new(pgconn.ConnectError)
	if !errors.As(err, &answer) || errors.As(err, &refused) {
		return &ConnectionError{kind, err}
	}
	const readOnly = "25006" // the query would have written
	if answer.Code == readOnly {
		kind = ErrFailed
	}
	return fmt.Errorf("%w: %s (SQLSTATE %s)", kind, answer.Message, answer.Code)
}
