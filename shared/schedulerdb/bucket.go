package schedulerdb

import (
	"math"
	"time"
)

// bucket holds what may start of something whose starts a second are limited.
type bucket struct {
	Tokens float64   `json:"tokens"`
	At     time.Time `json:"at"` // when it held them
}

// longestWait bounds what a rate of nearly nothing makes the clock expect.
const longestWait = 24 * time.Hour

// depthOf is how many may start at once under a limit of so many a second.
func depthOf(perSecond float64) float64 { return max(1, perSecond/20) }

// refillOf is how many more may a second: with a full bucket before it, no second has more than the
// limit, for a start that would be one too many comes when the second is over.
func refillOf(perSecond float64) float64 { return perSecond - depthOf(perSecond) + 1 }

// now is what the bucket holds at an instant; it never goes back in time, see fillFrom.
func (b bucket) now(at time.Time, perSecond float64) bucket {
	if elapsed := at.Sub(b.At); elapsed > 0 {
		b.Tokens = min(b.Tokens+elapsed.Seconds()*refillOf(perSecond), depthOf(perSecond))
		b.At = at
	}
	b.Tokens = min(b.Tokens, depthOf(perSecond)) // the limit may have been lowered
	return b
}

// opensAt is when it is worth to come again: half a bucket at a time, so that a high rate has the clock
// wake forty times a second and no more. Zero: something may start now.
func (b bucket) opensAt(perSecond float64) time.Time {
	if b.Tokens >= 1 {
		return time.Time{}
	}
	missing := max(1, depthOf(perSecond)/2) - b.Tokens
	wait := min(missing/refillOf(perSecond), longestWait.Seconds())
	return b.At.Add(time.Duration(math.Ceil(wait*1e6)) * time.Microsecond)
}
