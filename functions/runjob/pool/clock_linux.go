package pool

import (
	"time"

	"golang.org/x/sys/unix"
)

// sinceBoot is CLOCK_BOOTTIME; zero where the kernel has none.
func sinceBoot() time.Duration {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}
