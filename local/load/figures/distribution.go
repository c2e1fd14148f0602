// Package figures is the arithmetic of the bench, and the shape of its results.
package figures

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Distribution is a latency in milliseconds.
type Distribution struct {
	N   int     `json:"n"`
	P50 float64 `json:"p50_ms"`
	P95 float64 `json:"p95_ms"`
	P99 float64 `json:"p99_ms"`
	Max float64 `json:"max_ms"`
}

// Distribute sorts durations and sums them up. Without durations the result is zero.
func Distribute(d []time.Duration) Distribution {
	if len(d) == 0 {
		return Distribution{}
	}
	slices.Sort(d)
	at := func(q float64) float64 { // the nearest rank: a value that was measured
		rank := int(math.Ceil(q * float64(len(d))))
		return float64(d[max(rank, 1)-1].Microseconds()) / 1000
	}
	return Distribution{N: len(d), P50: at(.5), P95: at(.95), P99: at(.99), Max: at(1)}
}

// String returns the distribution on one line.
func (d Distribution) String() string {
	return fmt.Sprintf("p50 %.1f  p95 %.1f  p99 %.1f  max %.1f ms  (n=%d)", d.P50, d.P95, d.P99, d.Max, d.N)
}

// Spread is a figure that was measured several times.
type Spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// SpreadOf sums up values. Without values the result is zero.
func SpreadOf(values []float64) Spread {
	if len(values) == 0 {
		return Spread{}
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	median := sorted[middle]
	if len(sorted)%2 == 0 {
		median = (sorted[middle-1] + sorted[middle]) / 2
	}
	return Spread{Median: median, Min: sorted[0], Max: sorted[len(sorted)-1]}
}
