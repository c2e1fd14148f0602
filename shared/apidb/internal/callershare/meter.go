package callershare

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Meter counts bytes of rows before they are decoded. An error ends the statement.
type Meter func(bytes int64) error

type meterKey struct{}

// WithMeter counts the rows of all statements with this context.
func WithMeter(ctx context.Context, meter Meter) context.Context {
	return context.WithValue(ctx, meterKey{}, meter)
}

func meterOf(ctx context.Context) Meter {
	meter, _ := ctx.Value(meterKey{}).(Meter)
	return meter
}

// MeteredTx is a transaction whose rows are counted.
type MeteredTx struct{ pgx.Tx }

// Query implements gen.DBTX, as does the method below.
func (t MeteredTx) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	rows, err := t.Tx.Query(ctx, sql, args...)
	if meter := meterOf(ctx); meter != nil && err == nil {
		rows = &meteredRows{Rows: rows, meter: meter}
	}
	return rows, err
}

// QueryRow reads one row.
func (t MeteredTx) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if meterOf(ctx) == nil {
		return t.Tx.QueryRow(ctx, sql, args...)
	}
	rows, err := t.Query(ctx, sql, args...)
	return oneRow{rows, err}
}

// meteredRows end with the meter's error.
type meteredRows struct {
	pgx.Rows
	meter Meter
	err   error
}

func (r *meteredRows) Next() bool {
	if r.err != nil || !r.Rows.Next() {
		return false
	}
	bytes := 0
	for _, value := range r.RawValues() {
		bytes += len(value)
	}
	if r.err = r.meter(int64(bytes)); r.err != nil {
		r.Close()
		return false
	}
	return true
}

func (r *meteredRows) Err() error {
	if r.err != nil {
		return r.err
	}
	return r.Rows.Err()
}

// oneRow is the first of some rows, as pgx's own QueryRow returns it.
type oneRow struct {
	rows pgx.Rows
	err  error
}

func (r oneRow) Scan(dest ...any) error {
	if r.err != nil {
		return r.err
	}
	defer r.rows.Close()
	if !r.rows.Next() {
		if err := r.rows.Err(); err != nil {
			return err
		}
		return pgx.ErrNoRows
	}
	if err := r.rows.Scan(dest...); err != nil {
		return err
	}
	r.rows.Close()
	return r.rows.Err()
}
