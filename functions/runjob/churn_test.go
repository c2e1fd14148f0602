package runjob

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// Workers come and go while every record exists twice, on two partitions. Each attempt starts at most once, and its
// outcome is published.
func TestAttemptsStartOnceWhileWorkersComeAndGo(t *testing.T) {
	h := newFixture(t)
	brief := func(c *Config, times *timing) {
		c.PoolSize, c.Grace, times.stopPatience = 3, time.Millisecond, 100*time.Millisecond
		times.heartbeatAtMost, times.heartbeatAtLeast = 10*time.Millisecond, 50*time.Millisecond
		times.heldAtMost = 20 * time.Millisecond
	}
	workers := []*worker{h.start(brief), h.start(brief)}
	var all []jobevent.Run
	for range 6 {
		var runs []jobevent.Run
		for range 60 {
			runs = append(runs, h.run("SIMULATION", `{"steps": [{"type": "SLEEP", "durationMs": 5}]}`))
		}
		all = append(all, runs...)
		twice := slices.Concat(runs, runs)
		rand.Shuffle(len(twice), func(i, j int) { twice[i], twice[j] = twice[j], twice[i] })
		h.order(twice...)
		h.outcome(runs[rand.IntN(len(runs))])
		workers = append(workers, h.start(brief))
		workers[0].stop()
		workers = workers[1:]
	}
	completed := 0
	for _, run := range all {
		e := h.outcome(run)
		if e.Type() == jobevent.TypeCompleted {
			completed++
		} else if got := h.failed(run); got.Kind != jobevent.KindInterrupted {
			t.Errorf("%+v", got)
		}
		if n := h.startsOf(run); n > 1 || n == 0 && e.Type() == jobevent.TypeCompleted {
			t.Errorf("started %d times, then %s", n, e.Type())
		}
		for _, again := range h.outcomes(run, 1) {
			if again.ID() != e.ID() {
				t.Errorf("published %s, then %s", e.ID(), again.ID())
			}
		}
	}
	t.Logf("%d of %d completed, the others were handed back", completed, len(all))
	if n := h.count("SELECT count(*) FROM attempts WHERE outcome IS NULL"); n != 0 {
		t.Errorf("%d attempts are still open", n)
	}
}
