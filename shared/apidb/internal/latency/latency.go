// Package latency sorts durations into buckets that grow by a fifth: bucket i ends at 64 µs · 2^(i/4).
package latency

import (
	"math"
	"time"
)

// The buckets.
const (
	First       = 64 * time.Microsecond // the end of the first bucket
	PerDoubling = 4
	Last        = 200  // ends after 2,000 years
	None        = 0xff // no duration
)

// BucketOf returns the bucket of a duration.
func BucketOf(d time.Duration) int32 {
	if d <= First {
		return 0
	}
	return min(int32(math.Ceil(PerDoubling*math.Log2(float64(d)/float64(First)))), Last)
}
