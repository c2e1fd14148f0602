package pgpool

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// spans is the pgx.QueryTracer and pgx.BatchTracer of a database: a statement has a span if its context has one.
type spans struct {
	database string
	*sessions
}

// TraceQueryStart is pgx.QueryTracer's.
func (s spans) TraceQueryStart(ctx context.Context, _ *pgx.Conn, query pgx.TraceQueryStartData) context.Context {
	return telemetry.Query(ctx, s.database, query.SQL)
}

// TraceQueryEnd is pgx.QueryTracer's.
func (spans) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, end pgx.TraceQueryEndData) {
	queried(ctx, end.Err)
}

// TraceBatchStart implements pgx.BatchTracer. A batch has one span.
func (s spans) TraceBatchStart(ctx context.Context, _ *pgx.Conn, start pgx.TraceBatchStartData) context.Context {
	texts := make([]string, len(start.Batch.QueuedQueries))
	for i, query := range start.Batch.QueuedQueries {
		texts[i] = query.SQL
	}
	return telemetry.Query(ctx, s.database, texts...)
}

// TraceBatchQuery is pgx.BatchTracer's.
func (spans) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd is pgx.BatchTracer's.
func (spans) TraceBatchEnd(ctx context.Context, _ *pgx.Conn, end pgx.TraceBatchEndData) {
	queried(ctx, end.Err)
}

func queried(ctx context.Context, err error) {
	code := ""
	if refused := (*pgconn.PgError)(nil); errors.As(err, &refused) {
		code = refused.Code
	}
	telemetry.Queried(ctx, code, err)
}
