// Package apidb is the database jobweaver_api: what was asked for, and the scheduler's latest word on
// it. One method is one thing that happens; the reasons stand in sql/.
package apidb

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/pgpool"
)

// ErrNoJob says that there is no job with this id.
var ErrNoJob = errors.New("no such job")

// Store is safe for concurrent use. Errors of its methods are classified as by pgpool.Classify, and
// those for which pgpool.IsUnavailable holds are nobody's fault.
type Store struct {
	pool    *pgxpool.Pool
	q       *gen.Queries // a statement alone is its own transaction
	planned *gen.Queries // planned anew for the values of each call
	figures figuresCache
}

// Open connects to the database at url. The schema is there already: see migrations.
func Open(ctx context.Context, url string) (*Store, error) {
	pool, err := pgpool.Open(ctx, url, pgpool.ApplicationName("jobweaver-api"), pgpool.IndexOnly())
	if err != nil {
		return nil, fmt.Errorf("open jobweaver_api: %w", err)
	}
	return &Store{pool: pool, q: gen.New(pool), planned: gen.New(planned{pool})}, nil
}

// Close waits for connections in use.
func (s *Store) Close() { s.pool.Close() }

// Ping asks whether the database answers.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.pool.Ping(ctx); err != nil {
		return fmt.Errorf("ping jobweaver_api: %w", err)
	}
	return nil
}

func (s *Store) tx(ctx context.Context, fn func(q *gen.Queries) error) error {
	return pgpool.Tx(ctx, s.pool, func(tx pgx.Tx) error { return fn(gen.New(tx)) })
}

// planned runs statements whose best plan depends on their values: with an unnamed statement the
// planner sees them, and so can drop a filter that was not asked for, or take a partial index.
type planned struct{ *pgxpool.Pool }

func (p planned) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	return p.Pool.Query(ctx, sql, append([]any{pgx.QueryExecModeCacheDescribe}, args...)...)
}
