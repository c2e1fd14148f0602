package apidb

import (
	"context"

	"github.com/jobweaver/jobweaver/shared/apidb/internal/callershare"
)

// ErrCrowded says that a caller has used all the connections that one caller may have, for as long as it would wait.
var ErrCrowded = callershare.ErrCrowded

// WithCaller has what is done with the context take connections of the caller's share: half of the pool's. A caller
// that has all of its share waits for its own requests, and the others do not wait for it.
func WithCaller(ctx context.Context, caller string) context.Context {
	return callershare.With(ctx, caller)
}
