package dispatch

import (
	"testing"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

func TestTheRoomiestWorkerIsFilledFirst(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.NoteOut("default", "a", 0, 3)
	l.NoteOut("default", "", 6, 1) // sent to b, which has not listed it yet
	r := NewRoom([]*Worker{
		{ID: "a", Slots: 4, Partitions: map[string][]int32{"default": {0, 1, 2}}},
		{ID: "b", Slots: 4, Partitions: map[string][]int32{"default": {6, 7}}},
		{ID: "c", Slots: 9, Partitions: map[string][]int32{"mail": {0}}},
	}, l)
	targets := r.Take("default", 10)
	if len(targets) != 4 {
		t.Fatalf("%d targets", len(targets))
	}
	toA := 0
	for i, p := range Partitions(targets) {
		if p < 6 {
			toA++
			if i == 0 {
				t.Error("the fuller worker comes first")
			}
		}
	}
	if toA != 1 {
		t.Errorf("%d go to the worker with one free slot", toA)
	}
	if more := r.Take("default", 1); len(more) > 0 {
		t.Error("a full worker takes more")
	}
	r.GiveBack("default", targets[2:])
	if more := r.Take("default", 9); len(more) != 2 {
		t.Errorf("%d targets after two were given back", len(more))
	}
}

func TestAWorkersRateIsAddedToItsSlots(t *testing.T) {
	t.Parallel()
	r := NewRoom([]*Worker{{ID: "a", Slots: 12, Rate: 400, Partitions: map[string][]int32{"default": {0}}}}, newLedger(t))
	if n := len(r.Take("default", 1000)); n != 112 {
		t.Errorf("%d targets, want 12 slots and a quarter of a second", n)
	}
}

func TestAQueueWithoutAWorkerGetsAFewAttempts(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.NoteOut("default", "gone", 1, 5)
	r := NewRoom(nil, l)
	targets := r.Take("default", 100)
	if len(targets) != MaxUnserved-5 {
		t.Fatalf("%d targets", len(targets))
	}
	partitions := map[int16]bool{}
	for _, p := range Partitions(targets) {
		partitions[p] = true
	}
	if len(partitions) != min(len(targets), jobevent.RunPartitions) {
		t.Errorf("they go to %d partitions", len(partitions))
	}
	if r.GiveBack("default", targets[:2]); len(r.Take("default", 100)) != 2 {
		t.Error("what was given back is lost")
	}
}
