package runjob

import (
	"slices"
	"testing"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// orderDrain sends the order to a worker to drain, or to take attempts again.
func (h *fixture) orderDrain(workerID string, drain bool) {
	h.t.Helper()
	h.orderDrainBy(workerID, drain, 1)
}

// orderDrainBy sends the order of a version of the worker's control.
func (h *fixture) orderDrainBy(workerID string, drain bool, version int64) {
	h.t.Helper()
	e, err := jobevent.New(jobevent.TypeAttemptCancel, jobevent.Meta{
		Function: "watchdog", ID: jobevent.DrainID(workerID, version), Key: workerID,
	}, jobevent.AttemptCancel{WorkerID: workerID, Drain: drain, DrainVersion: version})
	if err != nil {
		h.t.Fatal(err)
	}
	packed, _ := jobevent.Pack([]jobevent.Item{e})
	h.send(packed...)
}

func TestADrainingWorkerFinishesWhatItRunsAndLeavesTheRestToOthers(t *testing.T) {
	h := newFixture(t)
	w := h.start(func(c *Config, _ *timing) { c.PoolSize, c.Build, c.Version = 1, "v7", "dev" })
	running, held := h.run("BLOCK", ""), h.run("BLOCK", "")
	h.order(running)
	h.untilStarted(running)
	h.order(held)
	h.untilHeld(w, 1)
	h.orderDrain("another", true)
	h.orderDrain(w.id, true)
	if got := h.failed(held); got.Kind != jobevent.KindInterrupted || got.StartedAt != nil || !got.Retryable {
		t.Errorf("held: %+v", got)
	}
	h.until("it has left its group", func() bool {
		last := h.heartbeatOf(w)
		return last.Draining && len(last.Partitions[h.queue]) == 0
	})
	if last := h.lastHeartbeat(w); last.Drained || last.Free != 0 || last.Stopping || len(last.Attempts) != 1 ||
		last.Build != "v7" {
		t.Errorf("while one runs: %+v", last)
	}

	// What has not been claimed is another worker's. It also receives the record of the running attempt, and does
	// not start it.
	unread := h.run("BLOCK", "")
	h.order(unread)
	other := h.start(nil)
	h.untilStarted(unread)
	h.open(unread)
	h.outcome(unread)
	if n := h.startsOf(running); n != 1 {
		t.Errorf("the running one started %d times", n)
	}
	h.open(running)
	if e := h.outcome(running); e.Type() != jobevent.TypeCompleted {
		t.Errorf("running: %v", e)
	}
	h.until("it is drained", func() bool { last := h.heartbeatOf(w); return last.Drained && len(last.Attempts) == 0 })

	// It takes attempts again when it is ordered to.
	other.stop()
	h.orderDrain(w.id, false)
	again := h.run("BLOCK", "")
	h.order(again)
	h.untilStarted(again)
	h.open(again)
	if e := h.outcome(again); e.Type() != jobevent.TypeCompleted {
		t.Errorf("again: %v", e)
	}
	h.until("it no longer drains", func() bool {
		last := h.heartbeatOf(w)
		return !last.Draining && !last.Drained && slices.Contains(last.Partitions[h.queue], 0)
	})
}

func TestAWorkerIsNotDrainedWhileAHandlerIgnoresItsTimeout(t *testing.T) {
	h := newFixture(t)
	w := h.start(nil)
	run := h.run("STUBBORN", "")
	run.TimeoutMs = 50
	h.order(run)
	if got := h.failed(run); got.ErrorCode != "WORKER.TIMEOUT" {
		t.Errorf("published %+v", got)
	}
	h.orderDrain(w.id, true)
	h.until("it drains, without attempts", func() bool {
		last := h.heartbeatOf(w)
		return last.Draining && len(last.Partitions[h.queue]) == 0 && len(last.Attempts) == 0
	})
	if last := h.lastHeartbeat(w); last.Drained {
		t.Errorf("while the handler runs: %+v", last)
	}
	h.open(run)
	h.until("it is drained", func() bool { return h.heartbeatOf(w).Drained })
}

func TestADrainingWorkerStops(t *testing.T) {
	h := newFixture(t)
	w := h.start(nil)
	<-w.cancels.Started() // it reads orders from then on
	h.orderDrain(w.id, true)
	h.until("it is drained", func() bool { return h.heartbeatOf(w).Drained })
	w.stop()
	if last := h.lastHeartbeat(w); !last.Stopping {
		t.Errorf("last heartbeat: %+v", last)
	}
}

func TestTheHeartbeatsOfADrainingWorkerNameTheOrderThatTheyFollow(t *testing.T) {
	h := newFixture(t)
	w := h.start(nil)
	<-w.cancels.Started() // it reads orders from then on
	for version, drain := range []bool{true, true, false, true} {
		h.orderDrainBy(w.id, drain, int64(version+1))
		h.until("its heartbeat follows the order", func() bool {
			last := h.heartbeatOf(w)
			return last.Drained == drain && last.Draining == drain && last.DrainVersion == int64(version+1)
		})
	}
}
