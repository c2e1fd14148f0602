//go:build !linux

package workcmd

import "log/slog"

// Other systems have no /proc with the environments of processes.
func hideEnvironment(*slog.Logger) {}
