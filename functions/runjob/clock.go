package runjob

import "time"

// clock tells how long ago something was, also when the machine slept or stood still meanwhile: time.Time's monotonic
// clock does not run then.
type clock struct {
	sinceBoot func() time.Duration // with the time that the machine slept
}

// moment is an instant by all of a process's clocks.
type moment struct {
	at        time.Time
	sinceBoot time.Duration
}

func (c clock) now() moment { return moment{time.Now(), c.sinceBoot()} }

// since is how long ago m was by the clock that has run most. A wall clock that was put forward counts too: a virtual
// machine that stood still may know it from nothing else. It costs a worker the starts until its next beat.
func (c clock) since(m moment, now time.Time) time.Duration {
	return max(now.Sub(m.at), now.Round(0).Sub(m.at.Round(0)), c.sinceBoot()-m.sinceBoot)
}
