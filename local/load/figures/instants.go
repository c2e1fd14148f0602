package figures

import (
	"slices"
	"time"
)

// RateBetween returns how many instants a second lie within [from, to).
func RateBetween(instants []time.Time, from, to time.Time) float64 {
	n := 0
	for _, at := range instants {
		if !at.Before(from) && at.Before(to) {
			n++
		}
	}
	return float64(n) / to.Sub(from).Seconds()
}

// LongestGap returns the longest time within [from, to] that contains no instant.
func LongestGap(instants []time.Time, from, to time.Time) time.Duration {
	sorted := slices.SortedFunc(slices.Values(instants), time.Time.Compare)
	longest, last := time.Duration(0), from
	for _, at := range sorted {
		if at.Before(from) || at.After(to) {
			continue
		}
		longest, last = max(longest, at.Sub(last)), at
	}
	return max(longest, to.Sub(last))
}
