package funchost

import (
	"context"
	"errors"
)

// Run hosts f until ctx ends, then drains: it takes nothing more, finishes what it has, publishes,
// commits, and returns nil. It returns an error when it cannot start, when f.Run fails, or when the
// drain took longer than the grace; what was not acknowledged then is delivered again.
func Run(ctx context.Context, cfg Config, f Function) error {
	return errors.ErrUnsupported
}
