package dispatch

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// However the steps are timed, no second has more starts than the limit. Under constant demand the rate is used up,
// except for a loss due to the length of the steps.
func TestNoSecondSeesMoreStartsThanTheLimit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		limit := rapid.SampledFrom([]int{1, 2, 5, 19, 20, 21, 50, 100, 1000}).Draw(rt, "limit")
		rate, begin := float64(limit), time.Now()
		b := bucket{Tokens: depthOf(rate), At: begin}
		at := begin
		var starts []time.Time
		isGreedy := rapid.Bool().Draw(rt, "greedy")
		for range rapid.IntRange(1, 300).Draw(rt, "steps") {
			switch {
			case isGreedy && b.Tokens < 1:
				at = b.opensAt(rate)
			case !isGreedy:
				at = at.Add(time.Duration(rapid.Int64Range(-1e6, 2e8).Draw(rt, "ns"))) // a step may get the lock late
			}
			b = b.now(at, rate)
			take := int(b.Tokens)
			if !isGreedy {
				take = rapid.IntRange(0, take).Draw(rt, "take")
			}
			b.Tokens -= float64(take)
			for range take {
				starts = append(starts, b.At)
			}
		}
		for i := range starts {
			if j := i + limit; j < len(starts) && starts[j].Sub(starts[i]) < time.Second {
				rt.Fatalf("%d starts in %s", limit+1, starts[j].Sub(starts[i]))
			}
		}
		took := b.At.Sub(begin).Seconds()
		if want := took*refillOf(rate) - 1; isGreedy && float64(len(starts)) < want {
			rt.Errorf("%d starts in %g s, want %g", len(starts), took, want)
		}
	})
}

func TestARateOfNearlyNothingIsWaitedForInDays(t *testing.T) {
	t.Parallel()
	b := bucket{At: time.Now()}
	for _, rate := range []float64{1e-300, 1e-9, 0.5, 1, 7.5, 1e6, 1e300} {
		at := b.opensAt(rate)
		if wait := at.Sub(b.At); wait <= 0 || wait > longestWait {
			t.Errorf("at %g a second it waits %s", rate, wait)
		}
		if later := b.now(at, rate); rate > 1e-5 && later.Tokens < 1 {
			t.Errorf("at %g a second nothing may start when it is time: %g", rate, later.Tokens)
		}
	}
}
