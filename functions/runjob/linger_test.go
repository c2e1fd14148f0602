package runjob

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/jobweaver/jobweaver/functions/runjob/pool"
	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// An outcome every 5 ms is frequent; one a second is not.
func TestOutcomesWaitForOthersOnlyWhileTheyAreFrequent(t *testing.T) {
	t.Parallel()
	l := (&Function{cfg: Config{SettleLinger: 25 * time.Millisecond}}).newLinger()
	at := time.Now()
	come := func(times, outcomes int, after time.Duration) {
		for range times {
			at = at.Add(after)
			l.note(outcomes, at)
		}
	}
	if l.pays() {
		t.Error("the first outcome of a worker waits")
	}
	come(20, 1, 5*time.Millisecond)
	if !l.pays() {
		t.Error("with an outcome every 5 ms none waits")
	}
	if come(20, 1, time.Second); l.pays() {
		t.Error("with an outcome a second they wait")
	}
	come(10, 5, 25*time.Millisecond)
	if !l.pays() {
		t.Error("with five outcomes every 25 ms none waits")
	}
	come(3, 1, time.Minute) // a pause
	if come(10, 1, 5*time.Millisecond); !l.pays() {
		t.Error("after a pause none waits any more")
	}
	if never := (&Function{}).newLinger(); never.pays() {
		t.Error("without SETTLE_LINGER they wait")
	}
	if forPull := (&Function{cfg: Config{SettleLinger: time.Second, Demand: &Demand{}}}).newLinger(); forPull.most > 0 {
		t.Error("behind a pull worker they wait")
	}
}

func TestGatheringEndsInTimeOrForAnUrgentItem(t *testing.T) {
	t.Parallel()
	const within = time.Second
	urgent := func(n int) bool { return n < 0 }
	for name, c := range map[string]struct {
		put  func(in *intake[int])
		took time.Duration
		want []int
	}{
		"others come":        {func(in *intake[int]) { in.put(2); in.put(3) }, within, []int{1, 2, 3}},
		"none comes":         {func(*intake[int]) {}, within, []int{1}},
		"one is urgent":      {func(in *intake[int]) { in.put(2); in.put(-1) }, 10 * time.Millisecond, []int{1, 2, -1}},
		"the intake is over": {func(in *intake[int]) { in.close() }, 10 * time.Millisecond, []int{1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				in := newIntake[int]()
				go func() {
					<-time.After(time.Minute) // the wait begins with the first item
					in.put(1)
					<-time.After(10 * time.Millisecond)
					c.put(in)
				}()
				began := time.Now()
				in.gather(within, urgent)
				if took := time.Since(began) - time.Minute; took != c.took {
					t.Errorf("it took %s, want %s", took, c.took)
				}
				if got := in.take(maxBatch); !slices.Equal(got, c.want) {
					t.Errorf("it gathered %v, want %v", got, c.want)
				}
			})
		})
	}
}

func TestAnOutcomeForWhichAnotherWaitsIsPrompt(t *testing.T) {
	t.Parallel()
	awaited := &pool.Attempt{}
	settled := func(jobevent.Kind) {}
	awaited.Settled.Store(&settled)
	for name, c := range map[string]struct {
		one  pool.Finished
		want bool
	}{
		"a plain job":                  {pool.Finished{Attempt: &pool.Attempt{}}, false},
		"a job that has waited":        {pool.Finished{Attempt: &pool.Attempt{Run: jobevent.Run{Prompt: true}}}, true},
		"an attempt of a caller":       {pool.Finished{Attempt: awaited}, true},
		"an outcome of another worker": {pool.Finished{}, true},
	} {
		if got := prompt(c.one); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestFrequentOutcomesAreSettledTogether(t *testing.T) {
	h := newFixture(t)
	w := h.start(func(c *Config, _ *timing) { c.SettleLinger = time.Second })
	runs := make([]jobevent.Run, 60) // after the first outcomes the worker knows that they are frequent
	for i := range runs {
		runs[i] = h.run("SIMULATION", noop)
		h.order(runs[i])
	}
	for _, run := range runs {
		h.outcome(run)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(w.metrics.settles)
	found, err := registry.Gather()
	if err != nil || len(found) != 1 {
		t.Fatalf("there are %v, %v", found, err)
	}
	if got := found[0].GetMetric()[0].GetHistogram(); got.GetSampleSum() != 60 || got.GetSampleCount() > 40 {
		t.Errorf("%v outcomes were settled in %d transactions", got.GetSampleSum(), got.GetSampleCount())
	}
}
