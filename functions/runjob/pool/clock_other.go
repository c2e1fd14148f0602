//go:build !linux

package pool

import "time"

// sinceBoot returns zero, because this system has no such clock: the wall clock has to suffice.
func sinceBoot() time.Duration { return 0 }
