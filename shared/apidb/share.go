package apidb

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/jobweaver/jobweaver/shared/fairshare"
)

// ErrCrowded says that a caller has used all the connections that one caller may have, for as long as it would wait.
var ErrCrowded = errors.New("too many requests of this caller are under way")

type callerKey struct{}

// WithCaller has what is done with the context take connections of the caller's share: half of the pool's. Whoever has
// all of its share waits for itself, and not the others for it.
func WithCaller(ctx context.Context, caller string) context.Context {
	return context.WithValue(ctx, callerKey{}, caller)
}

// unshared is the context for what others wait for as well: it waits for nobody's share.
func unshared(ctx context.Context) context.Context { return context.WithValue(ctx, callerKey{}, nil) }

// sharedPool runs statements, each on a connection of the pool.
type sharedPool struct {
	pool   *pgxpool.Pool
	shares *fairshare.Shares
}

func newSharedPool(pool *pgxpool.Pool) sharedPool {
	each := max(1, int(pool.Config().MaxConns)/2)
	return sharedPool{pool, fairshare.New(math.MaxInt32, each)} // the pool itself bounds them all
}

// enter waits until the context's caller may have one more connection.
func (p sharedPool) enter(ctx context.Context) (leave func(), err error) {
	caller, ok := ctx.Value(callerKey{}).(string)
	if !ok {
		return func() {}, nil
	}
	if leave, err = p.shares.Acquire(ctx, caller); errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%w: %w", ErrCrowded, err)
	}
	return leave, err
}

// Exec is for sqlc, as the two below.
func (p sharedPool) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	leave, err := p.enter(ctx)
	if err != nil {
		return pgconn.CommandTag{}, err
	}
	defer leave()
	return p.pool.Exec(ctx, sql, args...)
}

// Query leaves when its rows are closed.
func (p sharedPool) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	leave, err := p.enter(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := p.pool.Query(ctx, sql, args...)
	if err != nil {
		leave()
		return nil, err
	}
	return sharedRows{rows, sync.OnceFunc(leave)}, nil
}

// QueryRow leaves when its row is scanned.
func (p sharedPool) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	leave, err := p.enter(ctx)
	if err != nil {
		return sharedRow{err: err}
	}
	return sharedRow{row: p.pool.QueryRow(ctx, sql, args...), leave: leave}
}

type sharedRows struct {
	pgx.Rows
	leave func()
}

func (r sharedRows) Close() {
	r.Rows.Close()
	r.leave()
}

type sharedRow struct {
	row   pgx.Row
	leave func()
	err   error
}

func (r sharedRow) Scan(dest ...any) error {
	if r.err != nil {
		return r.err
	}
	defer r.leave()
	return r.row.Scan(dest...)
}
