package dispatch

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// reread closes the ledger, and reads it as the next transaction does.
func reread(t *testing.T, l *Ledger) *Ledger {
	t.Helper()
	if write, _ := l.Close(); !write {
		t.Fatal("nothing to write")
	}
	row := l.Row()
	row.N++
	next, err := ReadLedger(row)
	if err != nil {
		t.Fatal(err)
	}
	next.UseControls(l.controls)
	return next
}

func TestALedgerIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	l := newLedger(t, atMost("type", "A", 3), aSecond("owner", "acme", 10))
	rank, due := l.At.Add(-time.Minute), l.At.Add(time.Hour)
	delta := NewDelta()
	delta.NoteOut("default", "w", 3, 2)
	delta.NoteRunning(Class{JobType: "A", OwnerID: "acme"}, 2)
	delta.NoteWaiting("default", "", "", rank)
	delta.NoteWaiting("default", `type:"A"`, "", rank.Add(time.Second))
	delta.NoteDue(due)
	delta.NoteEnded(uuid.New(), nil, nil)
	l.Enter(delta)
	l.NoteDependencies(5)
	l.NoteReleased(1, []uuid.UUID{{7}})
	l.noteStarts(Class{JobType: "B", OwnerID: "acme"}, 1)
	l.NoteReady("default", "", "acme", rank)
	l.rounds = map[string]round{"default": {"acme", 2}}
	next := reread(t, l)
	if next.Revision() != 2 || next.ControlsRevision() != 1 || !next.due.Equal(due) || !next.floors["default"].Equal(rank) ||
		!next.lanes["default"][`type:"A"`].Equal(rank.Add(time.Second)) || next.out.ofQueue("default") != 2 ||
		next.running[Subject{"type", "A"}] != 2 || next.running[Subject{"owner", "acme"}] != 3 ||
		len(next.buckets) != 1 || next.dependents != 5 || next.unreleased[0] != (uuid.UUID{7}) || len(next.ended) > 0 ||
		!slices.Equal(next.keys["default"], []string{"", "acme"}) || next.rounds["default"] != (round{"acme", 2}) {
		t.Errorf("read %+v", next)
	}
}

func TestALedgerWithoutExtrasIsWrittenWithoutThem(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	delta := NewDelta()
	delta.NoteOut("default", "", 0, 1)
	l.Enter(delta)
	if l.Close(); string(l.Row().More) != "{}" {
		t.Errorf("extras %s", l.Row().More)
	}
	delta = NewDelta()
	delta.NoteOut("default", "", 0, -1)
	l.Enter(delta)
	if l.Close(); string(l.Row().InFlight) != "{}" {
		t.Errorf("in flight %s", l.Row().InFlight)
	}
}

func TestAnUnchangedLedgerIsNotWritten(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	delta := NewDelta()
	delta.NoteOut("default", "", 0, 1)
	delta.NoteOut("default", "", 0, -1)
	l.Enter(delta)
	if write, wake := l.Close(); write || wake {
		t.Errorf("write %t, wake %t", write, wake)
	}
}

func TestTheClockIsWokenOnlyForAnEarlierInstant(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	for _, c := range []struct {
		in   time.Duration
		wake bool
	}{{time.Hour, true}, {2 * time.Hour, false}, {time.Hour, false}, {time.Minute, true}} {
		l.wakeClock = false
		delta := NewDelta()
		delta.NoteDue(l.At.Add(c.in))
		l.Enter(delta)
		if _, wake := l.Close(); wake != c.wake {
			t.Errorf("due in %s: wake %t", c.in, wake)
		}
	}
}

func TestADriftIsEnteredOnce(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	counted := NewDelta()
	counted.NoteOut("default", "", 0, 1)
	counted.NoteWaiting("default", "", "", l.At)
	drift, revision := l.Drift(counted), l.Revision()
	for range 2 {
		delta := NewDelta()
		l.AddDrift(&delta, drift, revision)
		l.Enter(delta)
		l = reread(t, l)
		if n := l.out.ofQueue("default"); n != 1 {
			t.Fatalf("%d out", n)
		}
		if left := l.Drift(counted); !left.Empty() {
			t.Fatalf("left %+v", left)
		}
		l.changed = true
	}
}

func TestAFloorThatIsTooLowIsNoDrift(t *testing.T) {
	t.Parallel()
	l, counted := newLedger(t), NewDelta()
	delta := NewDelta()
	delta.NoteWaiting("default", "", "", l.At.Add(-time.Hour))
	l.Enter(delta)
	counted.NoteWaiting("default", "", "", l.At)
	if drift := l.Drift(counted); !drift.Empty() {
		t.Errorf("drift %+v", drift)
	}
}

func TestCountsUnderEarlierControlsAreLeftOut(t *testing.T) {
	t.Parallel()
	l := newLedger(t, atMost("type", "A", 3))
	for revision, want := range map[int64]int{1: 2, 7: 0} {
		l.SetRunning(nil)
		delta := NewDelta()
		delta.SetRunning(map[Subject]int{{"type", "A"}: 2}, revision)
		l.Enter(delta)
		if n := l.RunningOf(Subject{"type", "A"}); n != want {
			t.Errorf("counted under revision %d: %d run, want %d", revision, n, want)
		}
	}
}

func TestTransitionsAreSummedUp(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	for range 3 {
		delta := NewDelta()
		delta.NoteTransition("A", jobstate.Completed, 2)
		delta.NoteTransition("B", jobstate.Failed, 1)
		l.Enter(delta)
	}
	got := l.Transitions()
	if len(got) != 2 || got[0] != (Transition{"A", jobstate.Completed, 6}) || got[1] != (Transition{"B", jobstate.Failed, 3}) {
		t.Errorf("%+v", got)
	}
}

func TestAQueueThatAControlClosesIsNotReady(t *testing.T) {
	t.Parallel()
	l := newLedger(t, pause("queue", "closed"), pause("type", "A"))
	delta := NewDelta()
	delta.NoteWaiting("closed", "", "", l.At)
	delta.NoteWaiting("open", "", "", l.At)
	delta.NoteWaiting("lanes", `type:"A"`, "", l.At)
	l.Enter(delta)
	if ready := l.ReadyQueues(); len(ready) != 1 || ready[0] != "open" {
		t.Errorf("ready %v", ready)
	}
	if l.HasReady("lanes") || !l.HasReady("open") {
		t.Error("a paused type is ready, or the open queue is not")
	}
}

func TestTheClockComesBackForWorkThatAStepLeft(t *testing.T) {
	t.Parallel()
	const idle = 10 * time.Second
	l := newLedger(t, aSecond("queue", "default", 1))
	for name, c := range map[string]struct {
		sent int
		left func(l *Ledger)
		want time.Duration
	}{
		"nothing left":       {0, func(*Ledger) {}, idle},
		"a full step":        {MaxStep, func(*Ledger) {}, 0},
		"a search cut short": {1, func(l *Ledger) { l.cutShort = true }, 0},
		"jobs to release":    {1, func(l *Ledger) { l.unreleased = make([]uuid.UUID, 1) }, ReleasePause},
		"a limit":            {1, func(l *Ledger) { l.opensAt = l.At.Add(time.Second) }, time.Second},
	} {
		left := *l
		c.left(&left)
		if got := left.NextStep(idle, c.sent); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestControlsFoldToTheirHighestVersion(t *testing.T) {
	t.Parallel()
	control := func(name string, version int64) jobevent.Control {
		return jobevent.Control{Kind: "type", Name: name, Version: version}
	}
	newer, applied := FoldControls([]jobevent.Control{control("A", 5), control("C", 1)},
		[]jobevent.Control{control("A", 4), control("B", 2), control("B", 3), control("B", 1), control("C", 2)})
	if len(newer) != 2 || newer[0].Version != 3 || newer[1].Name != "C" {
		t.Errorf("newer %+v", newer)
	}
	if len(applied) != 3 || applied[0].Version != 5 || applied[1].Version != 3 || applied[2].Version != 2 {
		t.Errorf("applied %+v", applied)
	}
}

func TestTheNameOfALaneContainsItsSubjects(t *testing.T) {
	t.Parallel()
	subjects := []Subject{{jobevent.ControlType, `a" owner:"b`}, {jobevent.ControlOwner, "ü\n:\\"}}
	set := &Controls{byJob: true, bySubject: map[Subject]control{subjects[0]: {}, subjects[1]: {}}}
	l := newLedger(t)
	l.UseControls(set)
	for _, job := range [][]string{
		{subjects[0].Name, subjects[1].Name}, {subjects[0].Name, ""}, {subjects[0].Name, "other"}, {"other", subjects[1].Name},
		{"other", ""},
	} {
		touching := set.touching(job[0], job[1])
		read := subjectsOf(l.laneOf("default", job[0], job[1], ""))
		if len(read) != len(touching) {
			t.Fatalf("%q: %v, want %v", job, read, touching)
		}
		for i := range read {
			if read[i] != touching[i] {
				t.Errorf("%q: %v, want %v", job, read, touching)
			}
		}
	}
}
