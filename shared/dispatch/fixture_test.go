package dispatch

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// emptyRow is the row of a new installation.
func emptyRow(at time.Time) Row {
	return Row{
		N: 1, InFlight: json.RawMessage("{}"), Floors: json.RawMessage("{}"), More: json.RawMessage("{}"), At: at,
	}
}

// newLedger returns an empty ledger under controls.
func newLedger(t *testing.T, controls ...jobevent.Control) *Ledger {
	t.Helper()
	now := time.Now().Truncate(time.Microsecond)
	l, err := ReadLedger(emptyRow(now))
	if err != nil {
		t.Fatal(err)
	}
	set := NoControls
	if len(controls) > 0 {
		set = l.ChangeControls(controls)
	}
	l.UseControls(set)
	return l
}

// newRoom returns the room of one worker with this many slots.
func newRoom(l *Ledger, slots int) *Room {
	return NewRoom([]*Worker{{ID: "w", Slots: slots, Partitions: map[string][]int32{"default": {3}}}}, l)
}

func newJob() jobevent.Created {
	return jobevent.Created{
		JobID: uuid.Must(uuid.NewV7()), JobType: "A", Queue: "default", CreatedAt: time.Now().Add(-time.Minute),
	}
}

func newJobs(n int) []jobevent.Created {
	jobs := make([]jobevent.Created, n)
	for i := range jobs {
		jobs[i] = newJob()
	}
	return jobs
}

func atMost(kind jobevent.ControlKind, name string, n int) jobevent.Control {
	return jobevent.Control{Kind: kind, Name: name, Version: 1, MaxRunning: &n}
}

func pause(kind jobevent.ControlKind, name string) jobevent.Control {
	return jobevent.Control{Kind: kind, Name: name, Version: 1, Paused: true}
}

func aSecond(kind jobevent.ControlKind, name string, rate float64) jobevent.Control {
	return jobevent.Control{Kind: kind, Name: name, Version: 1, StartsPerSecond: &rate}
}
