package pool

import "time"

// clock measures how long ago something was, also when the machine slept or stood still meanwhile: time.Time's
// monotonic clock does not run then.
type clock struct {
	sinceBoot func() time.Duration // with the time that the machine slept
}

// Moment is an instant by all of a process's clocks.
type Moment struct {
	At        time.Time
	sinceBoot time.Duration
}

func (c clock) now() Moment { return Moment{time.Now(), c.sinceBoot()} }

// since is how long ago m was by the clock that has run most. A wall clock that was put forward counts too: a virtual
// machine that stood still may know it from nothing else. It costs a worker the starts until its next beat.
func (c clock) since(m Moment, now time.Time) time.Duration {
	return max(now.Sub(m.At), now.Round(0).Sub(m.At.Round(0)), c.sinceBoot()-m.sinceBoot)
}
