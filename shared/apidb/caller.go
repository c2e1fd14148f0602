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
