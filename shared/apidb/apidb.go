// Package apidb opens the database jobweaver_api, and holds what all its stores share: transactions, owners, the clock
// and notifications. Each store below it keeps one feature; the reasons stand in sql/.
package apidb

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/jobweaver/jobweaver/shared/apidb/internal/callershare"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// Store is safe for concurrent use. Its methods return errors that pgpool.Classify has classified. An error for which
// pgpool.IsUnavailable holds is not the fault of the request.
type Store struct {
	pool   *pgxpool.Pool
	shared callershare.Pool
	q      *gen.Queries  // each statement is its own transaction
	keys   *pgxpool.Pool // one connection, for authentication only, so that no read delays it
	clock  *clock
	ids    ids
	watch  watch
}

// NewestOfSchema is what the newest migration brings. Open refuses a database without it.
const NewestOfSchema = "update_waits()"

// Open connects to the database at url, whose schema the migrations have made.
func Open(ctx context.Context, url string) (*Store, error) {
	pool, err := pgpool.Open(ctx, url, pgpool.ApplicationName("jobweaver-api"), pgpool.IndexOnly(), pgpool.PlannedOnce())
	if err != nil {
		return nil, fmt.Errorf("open jobweaver_api: %w", err)
	}
	if err := pgpool.AwaitSchema(ctx, pool, "jobweaver_api", NewestOfSchema); err != nil {
		pool.Close()
		return nil, fmt.Errorf("open jobweaver_api: %w", err)
	}
	store := OverPool(pool)
	name := pgpool.ApplicationName("jobweaver-keys")
	store.keys, err = pgpool.Lazy(ctx, url, name, pgpool.IndexOnly(), pgpool.PlannedOnce(), alone)
	if err == nil {
		err = pgpool.Await(ctx, store.askTime) // so that already the first id has the database's time
	}
	if err != nil {
		store.Close()
		return nil, fmt.Errorf("open jobweaver_api: %w", err)
	}
	return store, nil
}

// OverPool makes a store on a pool of connections that pgpool.PlannedOnce has configured.
func OverPool(pool *pgxpool.Pool) *Store {
	shared := callershare.New(pool)
	return &Store{pool: pool, shared: shared, q: gen.New(shared), clock: newClock()}
}

// alone limits a pool to one connection, which it opens on first use.
func alone(cfg *pgxpool.Config) { cfg.MaxConns, cfg.MinConns, cfg.MinIdleConns = 1, 0, 0 }

// Close waits for the connections in use.
func (s *Store) Close() {
	s.pool.Close()
	if s.keys != nil {
		s.keys.Close()
	}
}

// Connections returns the figures of the pool.
func (s *Store) Connections() telemetry.Pool { return pgpool.Figures(s.pool) }

// Ping checks that the database answers and accepts writes. It reads the database's clock.
func (s *Store) Ping(ctx context.Context) error {
	err := s.Writable(ctx)
	if err == nil && s.keys != nil { // a server that a failover has left behind would still accept revoked keys
		err = pgpool.OnPrimary(ctx, s.keys)
	}
	if err == nil {
		err = s.askTime(ctx)
	}
	if err != nil {
		return fmt.Errorf("ping jobweaver_api: %w", err)
	}
	return nil
}

func (s *Store) askTime(ctx context.Context) error {
	_, err := s.Now(ctx)
	return err
}

// Writable checks that the database accepts writes.
func (s *Store) Writable(ctx context.Context) error { return pgpool.Writable(ctx, s.pool) }

// Queries returns the statements, each of which is its own transaction.
func (s *Store) Queries() *gen.Queries { return s.q }

// DB runs statements that are not in Queries, each in a transaction of its own.
func (s *Store) DB() gen.DBTX { return s.shared }

// AuthQueries returns the statements on the connection that only authentication uses.
func (s *Store) AuthQueries() *gen.Queries { return gen.New(s.keys) }

// Tx runs statements in one transaction.
func (s *Store) Tx(ctx context.Context, fn func(q *gen.Queries) error) error {
	return s.RawTx(ctx, func(tx pgx.Tx) error { return fn(gen.New(tx)) })
}

// RawTx is Tx for a caller that needs savepoints.
func (s *Store) RawTx(ctx context.Context, fn func(tx pgx.Tx) error) error {
	leave, err := s.shared.Enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	return pgpool.Tx(ctx, s.pool, func(tx pgx.Tx) error { return fn(callershare.MeteredTx{Tx: tx}) })
}

// Snapshot runs statements that all read the same snapshot of the database.
func (s *Store) Snapshot(ctx context.Context, fn func(q *gen.Queries) error) error {
	leave, err := s.shared.Enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	return pgx.BeginTxFunc(ctx, s.pool, options, func(tx pgx.Tx) error {
		return fn(gen.New(callershare.MeteredTx{Tx: tx}))
	})
}
