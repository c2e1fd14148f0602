package pool

import (
	"time"

	"golang.org/x/sys/unix"
)

// sinceBoot returns CLOCK_BOOTTIME; zero if the kernel does not have it.
func sinceBoot() time.Duration {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}
