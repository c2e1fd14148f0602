package httpserver

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestQuietWaitsUntilNoRequestCameForAWhile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		come []time.Duration // after the stop, each for a second
		want time.Duration
	}{
		"none":                    {nil, 2 * time.Second},
		"one":                     {[]time.Duration{time.Second}, 4 * time.Second},
		"one after another":       {[]time.Duration{0, 2 * time.Second, 4 * time.Second, 6 * time.Second}, 9 * time.Second},
		"one that comes too late": {[]time.Duration{3 * time.Second}, 2 * time.Second},
		"some who never end": {[]time.Duration{
			0, 2 * time.Second, 4 * time.Second, 6 * time.Second, 8 * time.Second, 10 * time.Second, 12 * time.Second,
		}, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				v := &InFlight{}
				for _, at := range c.come {
					time.AfterFunc(at, func() {
						v.begin()
						time.AfterFunc(time.Second, v.end)
					})
				}
				began := time.Now()
				v.Quiet(t.Context(), 2*time.Second, 10*time.Second)
				// While a request is under way, Quiet checks again after the quiet time.
				if took := time.Since(began); took < c.want || took >= c.want+2*time.Second {
					t.Errorf("closed after %s", took)
				}
				<-time.After(time.Minute) // of the bubble's time, so that later requests end too
			})
		})
	}
}
