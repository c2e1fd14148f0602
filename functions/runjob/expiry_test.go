package runjob

import (
	"slices"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/functions/runjob/pool"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/workerdb"
)

// expires sets when a run order expires, by the database's clock.
func (h *fixture) expires(run jobevent.Run, in time.Duration) jobevent.Run {
	h.t.Helper()
	at := time.UnixMicro(int64(h.count("SELECT (extract(epoch from now()) * 1e6)::bigint"))).Add(in).UTC()
	run.ExpiresAt = &at
	return run
}

func (h *fixture) wantExpired(run jobevent.Run) {
	h.t.Helper()
	got := h.failed(run)
	if got.Kind != jobevent.KindCancelled || got.ErrorCode != "SCHEDULER.EXPIRED" || got.Message == "" || got.StartedAt != nil {
		h.t.Errorf("published %+v", got)
	}
	if n := h.startsOf(run); n != 0 {
		h.t.Errorf("started %d times", n)
	}
}

func TestAnExpiredAttemptIsNotStarted(t *testing.T) {
	h := newFixture(t)
	w := h.start(nil)
	<-w.cancels.Started()
	plain, late := h.run("SIMULATION", noop), h.expires(h.run("SIMULATION", noop), -time.Millisecond)
	inTime, both := h.expires(h.run("SIMULATION", noop), time.Hour), h.expires(h.run("SIMULATION", noop), -time.Hour)
	both.Cancel = true
	h.order(plain, late, inTime, both)
	h.wantExpired(late)
	for _, run := range []jobevent.Run{plain, inTime} {
		if e := h.outcome(run); e.Type() != jobevent.TypeCompleted {
			t.Errorf("published %v", e)
		}
	}
	if got := h.failed(both); got.ErrorCode != "WORKER.CANCELLED" {
		t.Errorf("cancelled, and too late: %+v", got)
	}
	h.order(late)
	h.outcomes(late, 2)
	if n := h.startsOf(late); n != 0 {
		t.Errorf("started %d times when it came again", n)
	}
	h.untilCommitted(5)
}

func TestAnAttemptThatExpiresBeforeItGetsASlotIsNotStarted(t *testing.T) {
	h := newFixture(t)
	w := h.start(func(c *Config, times *timing) { c.PoolSize, times.heartbeatAtLeast = 1, time.Hour })
	blocker := h.run("BLOCK", "")
	h.order(blocker)
	h.untilStarted(blocker)
	late, after := h.expires(h.run("SIMULATION", noop), 5*time.Second), h.run("SIMULATION", noop)
	late.Rank = late.Rank.Add(-time.Minute)
	h.order(late, after)
	h.untilHeld(w, 2)
	w.untilPool(h, "it is too late", func(p *pool.Pool) bool {
		return slices.ContainsFunc(p.List(), func(a pool.Listed) bool { return a.Run.JobID == late.JobID && a.Expired(time.Now()) })
	})
	h.open(blocker)
	h.wantExpired(late)
	if e := h.outcome(after); e.Type() != jobevent.TypeCompleted {
		t.Errorf("published %v", e)
	}
}

func TestAHeartbeatGivesUpExpiredAttempts(t *testing.T) {
	h := newFixture(t)
	h.start(func(c *Config, times *timing) {
		c.PoolSize, times.heartbeatAtMost, times.heartbeatAtLeast = 1, 10*time.Millisecond, 20*time.Millisecond
	})
	blocker := h.run("BLOCK", "")
	h.order(blocker)
	h.untilStarted(blocker)
	late := h.expires(h.run("SIMULATION", noop), time.Second)
	h.order(late)
	h.wantExpired(late) // while the slot is still occupied
}

func TestAnAttemptOfAnUnansweredClaimExpires(t *testing.T) {
	h := newFixture(t)
	w := h.start(nil)
	late, inTime := h.expires(h.run("SIMULATION", noop), -time.Millisecond), h.expires(h.run("SIMULATION", noop), time.Hour)
	for _, run := range []jobevent.Run{late, inTime} {
		_, err := w.store.Claim(t.Context(), w.id, []workerdb.Order{{
			Key: workerdb.Key{JobID: run.JobID, Attempt: 1}, TimeoutMs: 1000,
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	h.order(late, inTime)
	h.wantExpired(late)
	if e := h.outcome(inTime); e.Type() != jobevent.TypeCompleted {
		t.Errorf("published %v", e)
	}
}
