package schedulerdb

import (
	"slices"
	"testing"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/emit"
)

func plainBeat(worker string, slots int, partition int32) jobevent.Heartbeat {
	return jobevent.Heartbeat{WorkerID: worker, Slots: slots, Partitions: map[string][]int32{"default": {partition}}}
}

// draining makes a heartbeat that follows an order to drain.
func draining(beat jobevent.Heartbeat, version int64) jobevent.Heartbeat {
	beat.Draining, beat.DrainVersion = true, version
	return beat
}

func TestADrainingWorkerGetsNoAttempts(t *testing.T) {
	h := newFixture(t)
	h.beats(plainBeat("old", 10, 0), plainBeat("new", 4, 1))
	h.control(pause(jobevent.ControlWorker, "old", 1))
	h.wantPartitions(h.ingest(typedJobs("A", 6)...).Runs, map[int16]int{1: 4})

	// The order is repeated until the worker's heartbeat shows it.
	for range 2 {
		got := h.beats(plainBeat("old", 10, 0), plainBeat("new", 4, 1))
		if want := []emit.Drain{{WorkerID: "old", Drain: true, Version: 1}}; !slices.Equal(got.Drains, want) {
			t.Fatalf("ordered %+v, want %+v", got.Drains, want)
		}
	}
	if got := h.beats(draining(plainBeat("old", 10, 0), 1)); len(got.Drains) > 0 || len(got.Runs) > 0 {
		t.Fatalf("ordered again %+v", got)
	}

	resumed := h.control(nothing(jobevent.ControlWorker, "old", 2))
	h.wantPartitions(resumed.Runs, map[int16]int{0: 2})
	got := h.beats(draining(plainBeat("old", 10, 0), 1), plainBeat("new", 4, 1))
	if want := []emit.Drain{{WorkerID: "old", Drain: false, Version: 2}}; !slices.Equal(got.Drains, want) {
		t.Fatalf("ordered %+v, want %+v", got.Drains, want)
	}
}

// Its heartbeats name the order, which distinguishes those from before an undo.
func TestAWorkerThatDrainsByAnEarlierOrderGetsTheLaterOne(t *testing.T) {
	h := newFixture(t)
	h.beats(plainBeat("old", 10, 0))
	h.control(pause(jobevent.ControlWorker, "old", 1))
	h.control(nothing(jobevent.ControlWorker, "old", 2))
	h.control(pause(jobevent.ControlWorker, "old", 3))
	got := h.beats(draining(plainBeat("old", 10, 0), 1))
	if want := []emit.Drain{{WorkerID: "old", Drain: true, Version: 3}}; !slices.Equal(got.Drains, want) {
		t.Fatalf("ordered %+v, want %+v", got.Drains, want)
	}
	if got := h.beats(draining(plainBeat("old", 10, 0), 3)); len(got.Drains) > 0 {
		t.Fatalf("ordered again %+v", got.Drains)
	}
}

// A job waits for a worker of its type even if the only one drains, and goes to a new process of that worker.
func TestADrainingWorkerCountsForNoType(t *testing.T) {
	h := newFixture(t)
	h.beats(beatOf("a", 10, 0, "A"), beatOf("b", 10, 1, "A", "B"))
	h.control(pause(jobevent.ControlWorker, "b", 1))
	if runs := h.ingest(typedJobs("B", 2)...).Runs; len(runs) > 0 {
		t.Fatalf("%d went out", len(runs))
	}
	h.wantPartitions(h.beats(beatOf("c", 10, 2, "B")).Runs, map[int16]int{2: 2})
}

// With all workers of a queue draining, attempts go out as if there were none, so that a new one is woken.
func TestAQueueWhoseWorkersAllDrainWakesANewOne(t *testing.T) {
	h := newFixture(t)
	h.beats(plainBeat("old", 10, 0))
	h.control(pause(jobevent.ControlWorker, "old", 1))
	if runs := h.ingest(typedJobs("A", 20)...).Runs; len(runs) != 16 {
		t.Fatalf("%d went out, want as many as wake a worker", len(runs))
	}
}

func TestADrainIsForgottenWithItsWorker(t *testing.T) {
	h := newFixture(t)
	h.beats(plainBeat("old", 10, 0), plainBeat("new", 10, 1))
	h.control(pause(jobevent.ControlWorker, "old", 1))
	gone := plainBeat("old", 10, 0)
	gone.Stopping = true
	if got := h.beats(gone); len(got.Drains) > 0 {
		t.Errorf("ordered a stopping worker: %+v", got.Drains)
	}
	h.exec("UPDATE workers SET seen_at = seen_at - interval '6 minutes' WHERE worker_id = 'old'")
	h.beats(plainBeat("new", 10, 1))
	h.control(pause(jobevent.ControlWorker, "new", 2))
	var names []string
	if err := h.pool.QueryRow(t.Context(), "SELECT array_agg(name) FROM controls").Scan(&names); err != nil {
		t.Fatal(err)
	}
	if want := []string{"new"}; !slices.Equal(names, want) {
		t.Errorf("drains of %v, want %v", names, want)
	}
}

// A machine can stand still for longer than the scheduler remembers its worker.
func TestADrainingWorkerThatWasSilentForHoursStillGetsNoAttempts(t *testing.T) {
	h := newFixture(t)
	h.beats(plainBeat("old", 10, 0), plainBeat("new", 4, 1))
	h.control(pause(jobevent.ControlWorker, "old", 1))
	h.beats(draining(plainBeat("old", 10, 0), 1))
	h.exec("UPDATE workers SET seen_at = now() - interval '61 minutes' WHERE worker_id = 'old'")
	h.beats(plainBeat("new", 4, 1))
	h.control(atMost(jobevent.ControlQueue, "other", 2, 1)) // with it the drain is forgotten

	following := draining(plainBeat("old", 10, 0), 1)
	following.Follows = "none"
	if got := h.beats(following).Follows; len(got) != 1 || !got[0].Drain.Drain || got[0].Version != 1 {
		t.Fatalf("ordered %+v", got)
	}
	if got := h.beats(draining(plainBeat("old", 10, 0), 1), plainBeat("new", 4, 1)); len(got.Drains) > 0 {
		t.Fatalf("ordered %+v", got.Drains)
	}
	h.wantPartitions(h.ingest(typedJobs("A", 6)...).Runs, map[int16]int{1: 4})

	h.wantPartitions(h.control(nothing(jobevent.ControlWorker, "old", 3)).Runs, map[int16]int{0: 2})
	got := h.beats(draining(plainBeat("old", 10, 0), 1))
	if want := []emit.Drain{{WorkerID: "old", Drain: false, Version: 3}}; !slices.Equal(got.Drains, want) {
		t.Fatalf("ordered %+v, want %+v", got.Drains, want)
	}
	if got := h.beats(plainBeat("old", 10, 0)); len(got.Drains) > 0 {
		t.Fatalf("ordered again %+v", got.Drains)
	}
}
