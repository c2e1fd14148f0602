package pool

import "time"

// clock measures how long ago an instant was, even if the machine was suspended meanwhile: the monotonic clock of
// time.Time does not run then.
type clock struct {
	sinceBoot func() time.Duration // including the time that the machine was suspended
}

// Moment is an instant by all clocks of a process.
type Moment struct {
	At        time.Time
	sinceBoot time.Duration
}

func (c clock) now() Moment { return Moment{time.Now(), c.sinceBoot()} }

// since returns how long ago m was, by the clock that shows the longest time. A wall clock that was put forward counts
// too: after a virtual machine was suspended, only the wall clock may show it. A worker then starts no attempt until
// its next heartbeat.
func (c clock) since(m Moment, now time.Time) time.Duration {
	return max(now.Sub(m.At), now.Round(0).Sub(m.At.Round(0)), c.sinceBoot()-m.sinceBoot)
}
