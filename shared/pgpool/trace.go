package pgpool

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// spans is the pgx.QueryTracer of a database: a statement has a span where its context has one.
type spans struct{ database string }

// TraceQueryStart is pgx.QueryTracer's.
func (s spans) TraceQueryStart(ctx context.Context, _ *pgx.Conn, query pgx.TraceQueryStartData) context.Context {
	return telemetry.Query(ctx, s.database, query.SQL)
}

// TraceQueryEnd is pgx.QueryTracer's.
func (spans) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, end pgx.TraceQueryEndData) {
	code := ""
	if refused := (*pgconn.PgError)(nil); errors.As(end.Err, &refused) {
		code = refused.Code
	}
	telemetry.Queried(ctx, code, end.Err)
}
