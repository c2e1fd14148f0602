//go:build !linux

package pool

import "time"

// sinceBoot is not known here: the wall clock has to do.
func sinceBoot() time.Duration { return 0 }
