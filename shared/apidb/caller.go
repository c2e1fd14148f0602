package apidb

import (
	"context"

	"github.com/jobweaver/jobweaver/shared/apidb/internal/callershare"
)

// ErrCrowded is returned to a caller whose own requests hold all connections of its share for longer than a request
// waits.
var ErrCrowded = callershare.ErrCrowded

// WithCaller counts the connections of statements with this context against the caller's share, half of the pool. A
// caller that has used up its share waits for its own requests; other callers do not wait for it.
func WithCaller(ctx context.Context, caller string) context.Context {
	return callershare.With(ctx, caller)
}

// WithMeter counts the bytes of all rows that statements with this context read, before they are decoded. An error of
// the meter ends the statement, and is the statement's error.
func WithMeter(ctx context.Context, meter func(bytes int64) error) context.Context {
	return callershare.WithMeter(ctx, meter)
}
