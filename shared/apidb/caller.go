package apidb

import (
	"context"

	"github.com/jobweaver/jobweaver/shared/apidb/internal/callershare"
)

// ErrCrowded is the error for a caller whose own requests have held all connections of its share for as long as a
// request waits.
var ErrCrowded = callershare.ErrCrowded

// WithCaller counts the connections that statements with this context take against the caller's share, which is half
// of the pool. A caller that has used up its share waits for its own requests, and other callers do not wait for it.
func WithCaller(ctx context.Context, caller string) context.Context {
	return callershare.With(ctx, caller)
}
