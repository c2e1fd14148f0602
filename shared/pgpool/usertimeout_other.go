//go:build !linux

package pgpool

import (
	"context"
	"syscall"
)

// setUserTimeout does nothing: here only keepalives notice a dead peer.
func setUserTimeout(context.Context, string, string, syscall.RawConn) error { return nil }
