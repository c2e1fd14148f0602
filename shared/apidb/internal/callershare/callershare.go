// Package callershare bounds how many connections of a pool one caller uses.
package callershare

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/fairshare"
)

// ErrCrowded is returned to a caller whose own requests hold all connections of its share for longer than a request
// waits.
var ErrCrowded error = apierror.New(apierror.RateLimited,
	"too many requests of this caller are under way; retry in 1 s")

type callerKey struct{}

// With counts the connections of statements with this context against the caller's share: half of the pool. A caller
// that has used up its share waits for its own requests; other callers do not wait for it.
func With(ctx context.Context, caller string) context.Context {
	return context.WithValue(ctx, callerKey{}, caller)
}

// Without returns a context without a caller and a meter, for work that other callers also wait for: it needs no share.
func Without(ctx context.Context) context.Context {
	return context.WithValue(context.WithValue(ctx, callerKey{}, nil), meterKey{}, nil)
}

// Pool runs each statement on a connection of the pool.
type Pool struct {
	pool   *pgxpool.Pool
	shares *fairshare.Shares
}

// New returns the pool with a share of half its connections for each caller.
func New(pool *pgxpool.Pool) Pool {
	each := max(1, int(pool.Config().MaxConns)/2)
	return Pool{pool, fairshare.New(math.MaxInt32, each)} // the pool itself bounds them all
}

// Enter waits until the context's caller may use one more connection.
func (p Pool) Enter(ctx context.Context) (leave func(), err error) {
	caller, ok := ctx.Value(callerKey{}).(string)
	if !ok {
		return func() {}, nil
	}
	if leave, err = p.shares.Acquire(ctx, caller); errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%w: %w", ErrCrowded, err)
	}
	return leave, err
}

// Exec implements gen.DBTX, as do the two methods below.
func (p Pool) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	leave, err := p.Enter(ctx)
	if err != nil {
		return pgconn.CommandTag{}, err
	}
	defer leave()
	return p.pool.Exec(ctx, sql, args...)
}

// Query gives the connection back when its rows are closed.
func (p Pool) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	leave, err := p.Enter(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := p.pool.Query(ctx, sql, args...)
	if err != nil {
		leave()
		return nil, err
	}
	if meter := meterOf(ctx); meter != nil {
		rows = &meteredRows{Rows: rows, meter: meter}
	}
	return sharedRows{rows, sync.OnceFunc(leave)}, nil
}

// QueryRow gives the connection back when its row is scanned.
func (p Pool) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if meterOf(ctx) != nil {
		rows, err := p.Query(ctx, sql, args...)
		return oneRow{rows, err}
	}
	leave, err := p.Enter(ctx)
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
