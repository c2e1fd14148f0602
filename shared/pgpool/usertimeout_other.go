//go:build !linux

package pgpool

import (
	"context"
	"syscall"
)

// setUserTimeout leaves it to the keepalives.
func setUserTimeout(context.Context, string, string, syscall.RawConn) error { return nil }
