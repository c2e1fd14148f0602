package workcmd

import (
	"log/slog"

	"golang.org/x/sys/unix"
)

// hideEnvironment makes /proc/PID of this process unreadable for its programs, which have the same user: its
// environment has the API key, and to unset a variable does not change what /proc shows. A program gets no such
// protection from it: execve makes it readable again.
func hideEnvironment(logger *slog.Logger) {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		logger.Warn("the programs can read the API key of this process", "error", err)
	}
}
