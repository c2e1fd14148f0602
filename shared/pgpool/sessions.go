package pgpool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// meaning has the settings that change what our statements mean or whether they work, with PostgreSQL's own defaults. A
// database or a role may have others. default_transaction_read_only is not among them: who sets it means it, so each
// new session is checked instead.
var meaning = map[string]string{
	"default_transaction_isolation":  "read committed",
	"default_transaction_deferrable": "off",
	"search_path":                    public,
	"client_encoding":                "UTF8",
	"timezone":                       "UTC",
	"datestyle":                      "ISO, MDY",
	"intervalstyle":                  "postgres",
	"bytea_output":                   "hex",
	"array_nulls":                    "on",
	"transform_null_equals":          "off",
	"standard_conforming_strings":    "on",
}

const (
	// refusedFor is how long a refused write counts as the state of the database.
	refusedFor = 4 * time.Second
	// diskEvery is the time between two checks of the disk.
	diskEvery = 4 * time.Second
	// sizeEvery is the time between two readings of the size of the database: the server looks at each of its files.
	sizeEvery = time.Minute
)

// sessions is what the sessions of one pool have experienced.
type sessions struct {
	pooler *pooler // nil: there is none
	ofUser bool    // its schema is none of ours
	pool   atomic.Pointer[pgxpool.Pool]

	mu        sync.Mutex
	dropped   chan struct{} // closed by drop; nil: nothing listens
	refused   error         // the last write that the server refused for any data
	refusedAt time.Time
	wrote     time.Time // the last time the server could write to its disk

	sized atomic.Int64 // when the size was read, in Unix nanoseconds
	bytes atomic.Int64 // the size of the database; 0: not known
}

// onError is pgconn's OnPgError: it reports whether a session stays open after an error. A session that the server has
// given up, and one of a server that takes no writes, must not serve another statement: after a failover by DNS or a
// virtual address the old sessions lead to the old server until they end.
func (s *sessions) onError(_ *pgconn.PgConn, err *pgconn.PgError) (stays bool) {
	sentence := Outage(err)
	if slices.Contains([]string{noWrites, full}, sentence) {
		s.mu.Lock()
		s.refused, s.refusedAt = err, time.Now()
		s.mu.Unlock()
	}
	if err.Code == "25006" {
		s.drop()
		return false
	}
	fatal := slices.Contains([]string{"FATAL", "PANIC"}, strings.ToUpper(err.Severity))
	return !fatal && err.Code != "57P01" && !slices.Contains([]string{"08", "28"}, class(err))
}

// drop closes all idle sessions and those that listen now, and the others when they are released.
func (s *sessions) drop() {
	if pool := s.pool.Load(); pool != nil {
		pool.Reset()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dropped != nil {
		close(s.dropped)
		s.dropped = nil
	}
}

var errDropped = errors.New("the server accepts no writes any more")

// untilDropped returns a context that ends when the sessions are dropped. A session that listens is none of the pool's,
// and an old server would never notify it.
func (s *sessions) untilDropped(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	s.mu.Lock()
	if s.dropped == nil {
		s.dropped = make(chan struct{})
	}
	dropped := s.dropped
	s.mu.Unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-dropped:
			cancel(errDropped)
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// lately returns the error of a write that the server refused a moment ago.
func (s *sessions) lately() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refused == nil || time.Since(s.refusedAt) > refusedFor {
		return nil
	}
	return s.refused
}

// dueDisk reports whether the disk was not checked for a while.
func (s *sessions) dueDisk() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Since(s.wrote) > diskEvery
}

func (s *sessions) noteDisk() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wrote = time.Now()
}

// Writable returns an error unless the database answers, accepts writes and has space on its disk. It writes no WAL, so
// that an idle installation stays idle: it asks the session whether it is read only, and now and then it has the server
// write 100 kB to a temporary file. It drops the sessions of a pool whose server has become read only.
// Why reading is not enough: docs/decisions/databases.md#all-sessions-must-accept-writes
func Writable(ctx context.Context, pool *pgxpool.Pool) error {
	own := sessionsOf(pool)
	if err := own.lately(); err != nil {
		return fmt.Errorf("write to database: %w", err)
	}
	return own.ask(ctx, pool, func(raw *pgconn.PgConn) error {
		own.readSize(ctx, raw)
		if !own.dueDisk() {
			return nil
		}
		if _, err := raw.Exec(ctx, spill).ReadAll(); err != nil && code(err) != "53400" { // 53400: temp_file_limit
			return fmt.Errorf("write to the disk of database: %w", err)
		}
		own.noteDisk()
		return nil
	})
}

// readSize reads the size of the database now and then. A failure keeps the last size: it is only a metric.
func (s *sessions) readSize(ctx context.Context, raw *pgconn.PgConn) {
	if now := time.Now().UnixNano(); now-s.sized.Load() >= int64(sizeEvery) {
		s.sized.Store(now)
		answer := raw.ExecParams(ctx, sizeQuery, nil, nil, nil, nil).Read()
		if answer.Err == nil && len(answer.Rows) == 1 {
			if bytes, err := strconv.ParseInt(string(answer.Rows[0][0]), 10, 64); err == nil {
				s.bytes.Store(bytes)
			}
		}
	}
}

// OnPrimary returns an error unless the database answers and a session of the pool may write. It is Writable for a pool
// beside another one of the same database.
func OnPrimary(ctx context.Context, pool *pgxpool.Pool) error {
	return sessionsOf(pool).ask(ctx, pool, func(*pgconn.PgConn) error { return nil })
}

// ask asks a session whether it may write, and drops all if it may not. It has no span.
func (s *sessions) ask(ctx context.Context, pool *pgxpool.Pool, then func(*pgconn.PgConn) error) error {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("reach database: %w", err)
	}
	defer conn.Release()
	if err := pgconn.ValidateConnectTargetSessionAttrsReadWrite(ctx, conn.Conn().PgConn()); err != nil {
		if errors.Is(err, pgconn.ErrReadOnlyConnection) {
			s.drop()
		}
		return fmt.Errorf("ask database: %w", err)
	}
	return then(conn.Conn().PgConn())
}

func sessionsOf(pool *pgxpool.Pool) *sessions {
	if tracer, ok := pool.Config().ConnConfig.Tracer.(spans); ok {
		return tracer.sessions
	}
	return &sessions{} // a test has made the pool
}

// sizeQuery reads the size of the database, or of one schema of several.
const sizeQuery = `select case current_schema() when 'public' then pg_database_size(current_database()) else (
	select coalesce(sum(pg_total_relation_size(oid)), 0)::bigint from pg_class
	where relnamespace = current_schema()::regnamespace and relkind in ('r', 'm', 'S')) end`

// spill has the server keep 3,000 rows in a temporary file on the disk of the database. The statements are one
// transaction, as they are sent as one text.
const (
	spill      = "set local work_mem = '64kB'; set local temp_tablespaces = ''; " + spillQuery
	spillQuery = "select count(*) from generate_series(1, 3000)"
)
