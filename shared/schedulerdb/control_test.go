package schedulerdb

import (
	"errors"
	"math"
	"testing"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/dispatch"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/emit"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/internal/gen"
)

func (h fixture) control(controls ...jobevent.Control) emit.Effects {
	h.Helper()
	effects, err := h.Control(h.Context(), controls)
	return h.must(effects, err)
}

func pause(kind jobevent.ControlKind, name string, version int64) jobevent.Control {
	return jobevent.Control{Kind: kind, Name: name, Version: version, Paused: true}
}

func atMost(kind jobevent.ControlKind, name string, version int64, running int) jobevent.Control {
	return jobevent.Control{Kind: kind, Name: name, Version: version, MaxRunning: &running}
}

func aSecond(kind jobevent.ControlKind, name string, version int64, starts float64) jobevent.Control {
	return jobevent.Control{Kind: kind, Name: name, Version: version, StartsPerSecond: &starts}
}

func nothing(kind jobevent.ControlKind, name string, version int64) jobevent.Control {
	return jobevent.Control{Kind: kind, Name: name, Version: version}
}

// staff inserts a worker with this many slots, which stays live during the whole test.
func (h fixture) staff(slots int) {
	h.Helper()
	h.heartbeat("w1", slots, []int32{0})
	h.exec("UPDATE workers SET seen_at = now() + interval '1 h'")
}

// subject is the queue, job type or owner of a control.
type subject struct {
	kind jobevent.ControlKind
	name string
}

// subjects has one subject of each kind. Controls of all of them apply to ownedJobs.
var subjects = []subject{
	{jobevent.ControlQueue, "default"}, {jobevent.ControlType, "SIMULATION"}, {jobevent.ControlOwner, "a \"b\" c"},
}

func ownedJobs(n int) []jobevent.Created {
	jobs := newJobs(n)
	for i := range jobs {
		jobs[i].OwnerID = `a "b" c`
	}
	return jobs
}

// completeAll completes attempts until no further one goes out, and returns how many completed.
func (h fixture) completeAll(out []emit.RunOrder) int {
	h.Helper()
	n := 0
	for len(out) > 0 {
		n += len(out)
		outcomes := make([]Outcome, len(out))
		for i, order := range out {
			outcomes[i] = completed(jobevent.Created{JobID: order.JobID}, int(order.Attempt))
		}
		out = h.settle(outcomes...).Runs
	}
	return n
}

// wantEmpty asserts that the ledger is empty and agrees with the rows.
func (h fixture) wantEmpty() {
	h.Helper()
	var inFlight, floors string
	var isRest bool
	err := h.pool.QueryRow(h.Context(), `SELECT in_flight, floors, more::jsonb ?| '{lanes,running,opensAt}'
		FROM dispatch_state`).Scan(&inFlight, &floors, &isRest)
	if drift := h.drift(); err != nil || !drift.Empty() || inFlight != "{}" || floors != "{}" || isRest {
		h.Errorf("drift %+v, in flight %s, floors %s, or something waits in a lane, runs or opens (%v)", drift, inFlight, floors, err)
	}
}

func (h fixture) ledger() *dispatch.Ledger {
	h.Helper()
	tx := h.begin()
	defer func() { _ = tx.Rollback(h.Context()) }()
	l, err := h.lockLedger(h.Context(), gen.New(tx))
	if err != nil {
		h.Fatal(err)
	}
	return l
}

func TestNoMoreThanTheLimitRunAtOnce(t *testing.T) {
	for _, s := range subjects {
		t.Run(string(s.kind), func(t *testing.T) {
			h := newFixture(t)
			h.staff(20)
			h.control(atMost(s.kind, s.name, 1, 3))
			jobs := ownedJobs(10)
			out := h.ingest(jobs[:5]...).Runs
			out = append(out, h.ingest(jobs[5:]...).Runs...)
			if len(out) != 3 || len(h.due().Runs) != 0 {
				t.Fatalf("%d out", len(out))
			}
			other := newJob()
			other.JobType = "OTHER"
			if s.kind == jobevent.ControlQueue {
				other.Queue = "other"
			}
			if effects := h.ingest(other); len(effects.Runs) != 1 || h.status(other).Version != 1 {
				t.Error("the limit costs a job that it does not touch more than its one write")
			}
			for i := range 10 {
				h.wantRunning(s, min(3, 10-i))
				o := completed(jobevent.Created{JobID: out[0].JobID}, 1)
				if i%2 == 0 {
					o = ended(jobevent.Created{JobID: out[0].JobID}, 1, jobstate.KindCancelled)
				}
				out = append(out[1:], h.settle(o).Runs...)
			}
			h.settle(completed(other, 1))
			h.wantEmpty()
		})
	}
}

func (h fixture) running(s subject) int {
	h.Helper()
	return h.ledger().RunningOf(dispatch.Subject{Kind: s.kind, Name: s.name})
}

func (h fixture) wantRunning(s subject, want int) {
	h.Helper()
	if got := h.running(s); got != want {
		h.Fatalf("%d of %s %s run, want %d", got, s.kind, s.name, want)
	}
	if drift := h.drift(); !drift.Empty() {
		h.Fatalf("drift %+v", drift)
	}
}

func TestPausedJobsWaitAndGoOutWhenResumed(t *testing.T) {
	for _, s := range subjects {
		t.Run(string(s.kind), func(t *testing.T) {
			h := newFixture(t)
			h.staff(20)
			jobs := ownedJobs(30)
			out := h.ingest(jobs[:25]...).Runs
			h.control(pause(s.kind, s.name, 1))
			more := len(h.ingest(jobs[25:]...).Runs)
			for i, order := range out {
				kind := jobstate.KindCompleted
				if i < 3 {
					kind = jobstate.KindInterrupted
				}
				more += len(h.settle(ended(jobevent.Created{JobID: order.JobID}, 1, kind)).Runs)
			}
			if more += len(h.due().Runs) + len(h.askAgain(0).Runs); more > 0 {
				t.Fatalf("%d went out", more)
			}
			if n := h.completeAll(h.control(nothing(s.kind, s.name, 2)).Runs); n != 13 {
				t.Errorf("%d went out when it was resumed", n)
			}
			h.wantEmpty()
		})
	}
}

func TestALimitSetWhileHundredsRunCountsThem(t *testing.T) {
	for _, s := range subjects {
		t.Run(string(s.kind), func(t *testing.T) {
			h := newFixture(t)
			h.staff(300)
			out := h.ingest(ownedJobs(400)...).Runs
			if h.control(atMost(s.kind, s.name, 1, 50)); len(out) != 300 {
				t.Fatalf("%d out", len(out))
			}
			for running := 300; running > 45; running-- {
				h.wantRunning(s, max(running, 50))
				if more := h.settle(completed(jobevent.Created{JobID: out[0].JobID}, 1)).Runs; len(more) > 0 != (running <= 50) {
					t.Fatalf("with %d running %d go out", running-1, len(more))
				}
				out = out[1:]
			}
		})
	}
}

func TestTheHighestVersionOfAControlIsInForce(t *testing.T) {
	h := newFixture(t)
	effects := h.control(pause("type", "A", 3), atMost("queue", "default", 1, 5), pause("type", "A", 2))
	if len(effects.Controls) != 2 || effects.Controls[0].Version != 3 || effects.Controls[1] != (jobevent.ControlApplied{
		Kind: "queue", Name: "default", Version: 1,
	}) {
		t.Errorf("returned %+v", effects.Controls)
	}
	if effects := h.control(nothing("type", "A", 2)); effects.Controls[0].Version != 3 {
		t.Errorf("returned %+v", effects.Controls)
	}
	events, err := h.control(nothing("type", "A", 4)).Events("command")
	if err != nil || len(events) != 1 || events[0].Type() != jobevent.TypeApplied || events[0].ID() != "control.type:A.v4" {
		t.Errorf("returned %v, %v", events, err)
	}
	if room := h.ledger().RoomOfQueue("default"); room != 5 {
		t.Errorf("the queue has room for %d", room)
	}
}

func TestInvalidControlsAreRefused(t *testing.T) {
	h := newFixture(t)
	for name, c := range map[string]jobevent.Control{
		"of no kind":      pause("tag", "a", 1),
		"of nothing":      pause("type", "", 1),
		"of an odd name":  pause("owner", "a\x00", 1),
		"of a long name":  pause("owner", string(make([]byte, 300)), 1),
		"of an odd queue": pause("queue", "A b", 1),
		"of no version":   pause("type", "A", 0),
		"fewer than none": atMost("type", "A", 1, -1),
		"no starts":       aSecond("type", "A", 1, 0),
		"negative starts": aSecond("type", "A", 1, -1),
		"no number":       aSecond("type", "A", 1, math.NaN()),
		"no such workers": created("a", "outcome", 1),
		"a pause":         pause(jobevent.ControlCreated, "a", 1),
		"of each queue":   created("*", "runjob", 1),
		"of no queue":     {Kind: jobevent.ControlType, Name: "A", Version: 1, Workers: "pull"},
	} {
		if _, err := h.Control(t.Context(), []jobevent.Control{c}); !errors.Is(err, jobevent.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	h.control(atMost("type", "A", 1, math.MaxInt), aSecond("type", "B", 1, 1e-300), aSecond("type", "C", 1, 1e300))
	for _, jobType := range []string{"A", "B", "C"} {
		job, next := newJob(), newJob()
		job.JobType, next.JobType = jobType, jobType
		if effects := h.ingest(job, next); len(effects.Runs) == 0 {
			t.Errorf("nothing of %s goes out", jobType)
		}
	}
}

// Controls whose transaction was rolled back are not used for the next set, which gets the same revision.
func TestControlsOfARolledBackTransactionAreNotUsed(t *testing.T) {
	h := newFixture(t)
	h.control(nothing("type", "A", 1))
	h.exec("CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no'; END $$")
	h.exec("CREATE TRIGGER fail BEFORE UPDATE ON dispatch_state FOR EACH ROW EXECUTE FUNCTION fail()")
	if _, err := h.Control(t.Context(), []jobevent.Control{pause("type", "SIMULATION", 1)}); err == nil {
		t.Fatal("taken")
	}
	h.exec("DROP TRIGGER fail ON dispatch_state")
	h.control(pause("type", "OTHER", 1))
	job := newJob()
	if effects := h.ingest(job); len(effects.Runs) != 1 || effects.Runs[0].JobID == uuid.Nil {
		t.Errorf("returned %+v", effects)
	}
}
