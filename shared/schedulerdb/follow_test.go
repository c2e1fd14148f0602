package schedulerdb

import (
	"slices"
	"testing"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

func created(name, workers string, version int64) jobevent.Control {
	return jobevent.Control{Kind: jobevent.ControlCreated, Name: name, Version: version, Workers: workers}
}

// Workers that follow the created queues are ordered to, until their heartbeats show that they know them.
func TestWorkersAreOrderedToServeTheCreatedQueues(t *testing.T) {
	h := newFixture(t)
	following := func(queues ...jobevent.CreatedQueue) jobevent.Heartbeat {
		beat := plainBeat("a", 10, 0)
		beat.Follows = jobevent.QueuesDigest(queues)
		return beat
	}
	if got := h.beats(following(), plainBeat("b", 10, 1)); len(got.Follows) > 0 {
		t.Fatalf("without a created queue: %+v", got.Follows)
	}
	h.control(created("reports", "runjob", 1), created("mail", "pull", 2))
	want := []jobevent.CreatedQueue{{Name: "mail", Workers: "pull"}, {Name: "reports", Workers: "runjob"}}
	for range 2 {
		got := h.beats(following(), plainBeat("b", 10, 1)).Follows
		if len(got) != 1 || got[0].WorkerID != "a" || got[0].Drain.Drain || !slices.Equal(got[0].Queues, want) {
			t.Fatalf("ordered %+v", got)
		}
	}
	if got := h.beats(following(want...)); len(got.Follows) > 0 {
		t.Fatalf("ordered again %+v", got.Follows)
	}
	h.control(created("mail", "", 3), pause(jobevent.ControlWorker, "a", 4))
	if got := h.beats(following(want...)).Follows; len(got) != 1 || !got[0].Drain.Drain || got[0].Version != 4 || !slices.Equal(got[0].Queues, want[1:]) {
		t.Fatalf("after a removal: %+v", got)
	}
	h.control(created("reports", "", 5))
	if got := h.beats(following(want[1:]...)).Follows; len(got) != 1 || len(got[0].Queues) != 0 {
		t.Fatalf("after the last one: %+v", got)
	}
}
