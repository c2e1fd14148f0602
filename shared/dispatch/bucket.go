package dispatch

import (
	"math"
	"time"
)

// bucket is a token bucket for a subject whose starts a second are limited: each token allows one start.
type bucket struct {
	Tokens float64   `json:"tokens"`
	At     time.Time `json:"at"` // when the bucket held these tokens
}

// longestWait bounds the wait under a very low rate.
const longestWait = 24 * time.Hour

// depthOf returns how many attempts may start at once under a limit of starts a second.
func depthOf(perSecond float64) float64 { return max(1, perSecond/20) }

// refillOf is how many tokens a second are added. With it no second has more starts than the limit, even if the bucket
// was full when the second began: the start that would be one too many comes when the second is over.
func refillOf(perSecond float64) float64 { return perSecond - depthOf(perSecond) + 1 }

// now returns the bucket at an instant. It never goes back in time; see refillFromNow.
func (b bucket) now(at time.Time, perSecond float64) bucket {
	if elapsed := at.Sub(b.At); elapsed > 0 {
		b.Tokens = min(b.Tokens+elapsed.Seconds()*refillOf(perSecond), depthOf(perSecond))
		b.At = at
	}
	b.Tokens = min(b.Tokens, depthOf(perSecond)) // the limit may have been lowered
	return b
}

// opensAt returns when the bucket is worth another look; zero: an attempt may start now. It waits for half a bucket, so
// that a high rate wakes the function dispatch forty times a second and no more.
func (b bucket) opensAt(perSecond float64) time.Time {
	if b.Tokens >= 1 {
		return time.Time{}
	}
	missing := max(1, depthOf(perSecond)/2) - b.Tokens
	wait := min(missing/refillOf(perSecond), longestWait.Seconds())
	return b.At.Add(time.Duration(math.Ceil(wait*1e6)) * time.Microsecond)
}
