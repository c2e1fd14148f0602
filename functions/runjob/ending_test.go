package runjob

import (
	"errors"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/functions/runjob/handlers"
	"github.com/jobweaver/jobweaver/functions/runjob/pool"
	"github.com/jobweaver/jobweaver/shared/jobevent"
)

func TestCancelOfARunningAttemptEndsItsContext(t *testing.T) {
	h := newFixture(t)
	w := h.start(func(_ *Config, times *timing) { times.cancelPatience = time.Hour })
	other := h.start(nil) // reads the cancel too, and must do no harm
	<-w.cancels.Started()
	<-other.cancels.Started()
	run := h.run("BLOCK", "")
	h.order(run)
	h.untilStarted(run)
	h.wantCancel(run)
	if got := h.failed(run); got.Kind != jobevent.KindCancelled || got.ErrorCode != "WORKER.CANCELLED" {
		t.Errorf("published %+v", got)
	}
	h.until("the context has ended", func() bool {
		return errors.Is(h.ends[jobevent.AttemptToken(run.JobID, 1)], handlers.ErrCancelled)
	})
}

func TestCancelOfAnUnclaimedAttempt(t *testing.T) {
	h := newFixture(t)
	w := h.start(nil)
	<-w.cancels.Started()
	run := h.run("BLOCK", "")
	h.wantCancel(run)
	if got := h.failed(run); got.Kind != jobevent.KindCancelled || got.StartedAt != nil {
		t.Errorf("published %+v", got)
	}
	h.order(run)
	h.outcomes(run, 2)
	if n := h.startsOf(run); n != 0 {
		t.Errorf("started %d times", n)
	}
}

func TestCancelOfAHeldAttemptAndByItsOrder(t *testing.T) {
	h := newFixture(t)
	w := h.start(func(c *Config, _ *timing) { c.PoolSize = 1 })
	<-w.cancels.Started()
	blocker, held, again, fresh := h.run("BLOCK", ""), h.run("BLOCK", ""), h.run("BLOCK", ""), h.run("BLOCK", "")
	h.order(blocker)
	h.untilStarted(blocker)
	h.order(held, again)
	h.untilHeld(w, 2)
	h.wantCancel(held)
	again.Cancel, fresh.Cancel = true, true
	h.order(again, fresh)
	for _, run := range []jobevent.Run{held, again, fresh} {
		if got := h.failed(run); got.Kind != jobevent.KindCancelled || got.StartedAt != nil {
			t.Errorf("published %+v", got)
		}
	}
	h.open(blocker)
	h.outcome(blocker)
	for _, run := range []jobevent.Run{held, again, fresh} {
		if n := h.startsOf(run); n != 0 {
			t.Errorf("started %d times", n)
		}
	}
}

func TestCancelOfAHandlerThatIgnoresIt(t *testing.T) {
	h := newFixture(t)
	w := h.start(func(_ *Config, times *timing) { times.cancelPatience = 10 * time.Millisecond })
	<-w.cancels.Started()
	run := h.run("STUBBORN", "")
	h.order(run)
	h.untilStarted(run)
	h.wantCancel(run)
	if got := h.failed(run); got.Kind != jobevent.KindCancelled {
		t.Errorf("published %+v", got)
	}
}

func TestACompletedAttemptIgnoresALateCancel(t *testing.T) {
	h := newFixture(t)
	w := h.start(nil)
	<-w.cancels.Started()
	run := h.run("STUBBORN", "")
	h.order(run)
	h.untilStarted(run)
	h.wantCancel(run)
	w.untilPool(h, "the cancel has arrived", func(p *pool.Pool) bool {
		attempts := p.List()
		return len(attempts) == 1 && attempts[0].Cancelled
	})
	h.open(run)
	if e := h.outcome(run); e.Type() != jobevent.TypeCompleted {
		t.Errorf("published %v", e)
	}
}

func TestTimeoutOfAHandlerThatIgnoresIt(t *testing.T) {
	h := newFixture(t)
	w := h.start(func(c *Config, _ *timing) { c.PoolSize = 1 })
	run := h.run("STUBBORN", "")
	run.TimeoutMs = 50
	h.order(run)
	if got := h.failed(run); got.Kind != jobevent.KindFailed || got.ErrorCode != "WORKER.TIMEOUT" || !got.Retryable ||
		got.FinishedAt.Sub(*got.StartedAt) < 50*time.Millisecond {
		t.Errorf("published %+v", got)
	}
	if got := w.pool.Figures(); got.Running != 1 || got.Overdue != 1 || w.pool.Free() != 0 {
		t.Errorf("its slot is not taken: %+v", got)
	}
	next := h.run("SIMULATION", noop)
	h.order(next)
	h.untilHeld(w, 1)
	h.open(run)
	h.outcome(next)
}

func TestTimeoutOfAHandlerThatObeysIt(t *testing.T) {
	h := newFixture(t)
	h.start(nil)
	for _, payload := range []string{
		`{"steps": [{"type": "SLEEP", "durationMs": 60000}]}`,
		`{"steps": [{"type": "COMPUTE", "iterations": 10000000000}]}`,
		`{"steps": [{"type": "HTTP_CALL", "latencyMs": 60000}]}`,
	} {
		run := h.run("SIMULATION", payload)
		run.TimeoutMs = 20
		h.order(run)
		if got := h.failed(run); got.ErrorCode != "WORKER.TIMEOUT" {
			t.Errorf("%s: published %+v", payload, got)
		}
	}
}

// untilHeld waits until n attempts wait for a slot.
func (h *fixture) untilHeld(w *worker, n int) {
	h.t.Helper()
	w.untilPool(h, "attempts are held", func(p *pool.Pool) bool { return p.Figures().Held == n })
}

// untilPool waits for a condition on the pool.
func (w *worker) untilPool(h *fixture, what string, condition func(*pool.Pool) bool) {
	h.t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		if condition(w.pool) {
			return
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			h.t.Fatalf("waited in vain until %s", what)
		}
	}
}
