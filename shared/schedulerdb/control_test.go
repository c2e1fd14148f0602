package schedulerdb

import (
	"errors"
	"math"
	"testing"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/internal/gen"
)

func (h house) control(controls ...jobevent.Control) Say {
	h.Helper()
	say, err := h.Control(h.Context(), controls)
	return h.must(say, err)
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

// staff has a worker of so many slots live as long as the test takes.
func (h house) staff(slots int) {
	h.Helper()
	h.beat("w1", slots, []int32{0})
	h.exec("UPDATE workers SET seen_at = now() + interval '1 h'")
}

// subjects are one of each kind that newJob's jobs, with an owner, stand under.
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

// completeAll has whatever went out complete until nothing more goes out, and returns how many it were.
func (h house) completeAll(out []RunOrder) int {
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

// wantEmpty says that the ledger keeps nothing, and that the rows agree.
func (h house) wantEmpty() {
	h.Helper()
	l := h.ledger()
	if drift := h.drift(); !drift.empty() || l.out.tidy() || len(l.floors) > 0 || len(l.lanes) > 0 || len(l.running) > 0 ||
		!l.OpensAt.IsZero() {
		h.Errorf("drift %+v, ledger %+v", drift, l)
	}
}

func (h house) ledger() *ledger {
	h.Helper()
	var l *ledger
	tx := h.begin()
	defer func() { _ = tx.Rollback(h.Context()) }()
	l, err := h.lockDispatch(h.Context(), gen.New(tx))
	if err != nil {
		h.Fatal(err)
	}
	return l
}

func TestNoMoreThanTheLimitRunAtOnce(t *testing.T) {
	for _, s := range subjects {
		t.Run(string(s.kind), func(t *testing.T) {
			h := newHouse(t)
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
			if say := h.ingest(other); len(say.Runs) != 1 || h.status(other).Version != 1 {
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

func (h house) wantRunning(s subject, want int) {
	h.Helper()
	if got := h.ledger().runningOf(s); got != want {
		h.Fatalf("%d of %s %s run, want %d", got, s.kind, s.name, want)
	}
	if drift := h.drift(); !drift.empty() {
		h.Fatalf("drift %+v", drift)
	}
}

func TestWhatIsPausedWaitsAndGoesOutWhenItIsResumed(t *testing.T) {
	for _, s := range subjects {
		t.Run(string(s.kind), func(t *testing.T) {
			h := newHouse(t)
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

func TestALimitThatIsSetWhileHundredsRunIsExactAtOnce(t *testing.T) {
	for _, s := range subjects {
		t.Run(string(s.kind), func(t *testing.T) {
			h := newHouse(t)
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

func TestTheHighestVersionOfAControlHolds(t *testing.T) {
	h := newHouse(t)
	say := h.control(pause("type", "A", 3), atMost("queue", "default", 1, 5), pause("type", "A", 2))
	if len(say.Controls) != 2 || say.Controls[0].Version != 3 || say.Controls[1] != (jobevent.ControlApplied{
		Kind: "queue", Name: "default", Version: 1,
	}) {
		t.Errorf("says %+v", say.Controls)
	}
	if say := h.control(nothing("type", "A", 2)); say.Controls[0].Version != 3 {
		t.Errorf("says %+v", say.Controls)
	}
	events, err := h.control(nothing("type", "A", 4)).Events("command")
	if err != nil || len(events) != 1 || events[0].Type() != jobevent.TypeApplied || events[0].ID() != "control.type:A.v4" {
		t.Errorf("says %v, %v", events, err)
	}
	if rules := h.ledger().controls.rules; len(rules) != 1 || rules[subject{"queue", "default"}].maxRunning != 5 {
		t.Errorf("goes by %+v", rules)
	}
}

func TestControlsThatCannotHoldAreRefused(t *testing.T) {
	h := newHouse(t)
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
	} {
		if _, err := h.Control(t.Context(), []jobevent.Control{c}); !errors.Is(err, jobevent.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	h.control(atMost("type", "A", 1, math.MaxInt), aSecond("type", "B", 1, 1e-300), aSecond("type", "C", 1, 1e300))
	for _, jobType := range []string{"A", "B", "C"} {
		job, next := newJob(), newJob()
		job.JobType, next.JobType = jobType, jobType
		if say := h.ingest(job, next); len(say.Runs) == 0 {
			t.Errorf("nothing of %s goes out", jobType)
		}
	}
}

func TestALanesNameTellsItsControls(t *testing.T) {
	t.Parallel()
	under := []subject{{jobevent.ControlType, `a" owner:"b`}, {jobevent.ControlOwner, "ü\n:\\"}}
	set := &controlSet{byJob: true, rules: map[subject]rule{under[0]: {}, under[1]: {}}}
	for _, job := range [][]string{
		{under[0].name, under[1].name}, {under[0].name, ""}, {under[0].name, "other"}, {"other", under[1].name}, {"other", ""},
	} {
		touching := set.touching(job[0], job[1])
		read := subjectsOf(set.laneOf(job[0], job[1]))
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

// A set of controls that was rolled back is not taken for the one that gets its number.
func TestControlsOfATransactionThatFailedDoNotHold(t *testing.T) {
	h := newHouse(t)
	h.control(nothing("type", "A", 1))
	h.exec("CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no'; END $$")
	h.exec("CREATE TRIGGER fail BEFORE UPDATE ON dispatch_state FOR EACH ROW EXECUTE FUNCTION fail()")
	if _, err := h.Control(t.Context(), []jobevent.Control{pause("type", "SIMULATION", 1)}); err == nil {
		t.Fatal("taken")
	}
	h.exec("DROP TRIGGER fail ON dispatch_state")
	h.control(pause("type", "OTHER", 1))
	job := newJob()
	if say := h.ingest(job); len(say.Runs) != 1 || say.Runs[0].JobID == uuid.Nil {
		t.Errorf("says %+v", say)
	}
}
