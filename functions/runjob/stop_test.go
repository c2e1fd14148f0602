package runjob

import (
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/functions/runjob/pool"
	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

func TestAStoppingWorkerFinishesRunningAttemptsAndHandsBackTheRest(t *testing.T) {
	h := newFixture(t)
	w := h.start(func(c *Config, _ *timing) { c.PoolSize = 1 })
	running, held := h.run("BLOCK", ""), h.run("BLOCK", "")
	h.order(running)
	h.untilStarted(running)
	h.order(held)
	h.untilHeld(w, 1)
	stopped := make(chan struct{})
	go func() { w.stop(); close(stopped) }()
	if got := h.failed(held); got.Kind != jobevent.KindInterrupted || got.StartedAt != nil || !got.Retryable {
		t.Errorf("held: %+v", got)
	}
	h.open(running)
	if e := h.outcome(running); e.Type() != jobevent.TypeCompleted {
		t.Errorf("running: %v", e)
	}
	<-stopped
	last := h.lastHeartbeat(w)
	if !last.Stopping || last.Free != 0 || len(last.Attempts) != 0 {
		t.Errorf("last heartbeat: %+v", last)
	}
	if n := h.startsOf(held); n != 0 {
		t.Errorf("held one started %d times", n)
	}
	h.untilCommitted(2)
}

func TestAStoppingWorkerEndsAttemptsAfterTheGracePeriod(t *testing.T) {
	h := newFixture(t)
	w := h.start(func(c *Config, times *timing) {
		c.Grace, times.stopPatience = 10*time.Millisecond, 10*time.Millisecond
	})
	minds, ignores := h.run("BLOCK", ""), h.run("STUBBORN", "")
	h.order(minds, ignores)
	h.untilStarted(minds, ignores)
	w.stop()
	for _, run := range []jobevent.Run{minds, ignores} {
		if got := h.failed(run); got.Kind != jobevent.KindInterrupted {
			t.Errorf("%s: %+v", run.JobType, got)
		}
	}
	h.untilCommitted(2)
}

func TestAWorkerStopsWhileTheBrokerIsUnavailable(t *testing.T) {
	h := newFixture(t)
	w := h.start(func(c *Config, times *timing) { c.Grace, times.flushAtMost = 5*time.Second, 100*time.Millisecond })
	run := h.run("BLOCK", "")
	h.order(run)
	h.untilStarted(run)
	h.update(func() { h.deafen = true })
	h.open(run)
	w.stop()
	h.update(func() { h.deafen = false })
	h.start(nil) // receives the record again, and publishes the outcome in the store
	if e := h.outcome(run); e.Type() != jobevent.TypeCompleted {
		t.Errorf("published %v", e)
	}
	if n := h.startsOf(run); n != 1 {
		t.Errorf("started %d times", n)
	}
}

func TestAStoppingWorkerWaitsForItsStoreWithinTheGracePeriod(t *testing.T) {
	h := newFixture(t)
	w := h.start(func(_ *Config, times *timing) { times.flushAtMost = time.Millisecond })
	run := h.run("BLOCK", "")
	h.order(run)
	h.untilStarted(run)
	back := h.storeAway()
	h.open(run)
	w.untilPool(h, "the outcome waits for the store", func(*pool.Pool) bool { return w.settling.Load() == 1 })
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		w.stop()
	}()
	w.untilPool(h, "nothing runs any more", func(p *pool.Pool) bool { return p.Figures().Stopping && p.Figures().Running == 0 })
	back()
	<-stopped
	if e := h.outcome(run); e.Type() != jobevent.TypeCompleted {
		t.Errorf("published %v", e)
	}
}

func TestAStoppedWorkerLeavesNoGoroutines(t *testing.T) {
	pgtest.Database(t, migrations.Worker) // starts the server, which outlives the test
	leaks(t)
	h := newFixtureAlone(t)
	w := h.start(nil)
	run := h.run("SIMULATION", noop)
	h.order(run)
	h.outcome(run)
	w.stop()
}
