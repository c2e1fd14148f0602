package main

import (
	"encoding/json"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/local/suites/chaos/installation"
	"github.com/jobweaver/jobweaver/local/suites/chaos/pulled"
	"github.com/jobweaver/jobweaver/shared/client"
)

// began is the beginning of fabricated histories.
var began = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time { return began.Add(time.Duration(seconds * float64(time.Second))) }

// fabricated returns a history in which every promise was kept: one job of each shape that the checks distinguish.
func fabricated() *history {
	h := &history{
		orders: map[string]*order{}, jobs: map[string]*job{}, runs: map[string][]run{}, calls: map[string]int{},
		ticks: map[string][]tick{}, workers: map[string]string{"w1": "runjob-1", "w2": "runjob-2"},
		records: map[string]int{}, stats: map[string]int{}, from: began, until: at(25),
	}
	h.add("plain", shapes[0], 1, 1.2)
	h.orders["plain"].delivered = true
	h.delivered = []installation.Line{{What: installation.LineDelivered, Job: "id-plain", How: completed, ID: "id-plain.v4"}}
	h.add("first", orderedShape, 2, 2.5)
	h.add("second", orderedShape, 3, 3.5)
	h.orders["first"].line, h.orders["second"].line = "line", "line"
	h.add("parent", parentShape, 4, 4.5)
	h.add("child", childShape, 5, 5.5)
	h.orders["child"].after = "parent"
	h.add("output", outputShape, 5, 5.5)
	h.orders["output"].outputOf = "child"
	h.runs["id-output"][0].how = installation.HowFailed
	h.again("output", 6, 6.5)
	h.add("skipped", skippedShape, 5, 5.5)
	delete(h.runs, "id-skipped")
	h.jobs["id-skipped"].Status = cancelled
	h.stats[completed]--
	h.stats[cancelled]++
	for i, key := range []string{"limited-1", "limited-2", "limited-3"} {
		h.add(key, shapeNamed("limited"), 6, 7+float64(i))
	}
	h.add("limited-4", shapeNamed("limited"), 8, 9)
	h.add("delayed", shapeNamed("delayed"), 6, 6.2)
	h.add("counting", shapeNamed("counting"), 6, 6.1)
	h.jobs["id-counting"].Attempts[0].Outcome = installation.HowSnoozed
	h.runs["id-counting"][0].how, h.runs["id-counting"][0].saved = installation.HowSnoozed, countsTo
	h.again("counting", 6.2, 6.3)
	h.runs["id-counting"][1].loaded = countsTo
	h.add("member", memberShape, 7, 8)
	h.add("next", nextShape, 8.5, 9)
	h.made = []*batchMade{{
		id: "batch", members: []*order{h.orders["member"]}, next: h.orders["next"], other: &order{key: "other", shape: nextShape},
	}}
	ended := at(8.4)
	h.batches = map[string]client.Batch{
		"batch": {BatchID: "batch", Status: completed, Total: 1, FinishedAt: &ended, FollowUpJobID: "id-next"},
	}
	h.addPulled()
	for i := range 2 {
		h.addTick(float64(10 * (i + 1)))
	}
	return h
}

// addPulled adds a job that waited for an event, and got it in its second attempt, and one of a batch handler. The first
// attempt of the latter failed.
func (h *history) addPulled() {
	h.workers["puller-1"] = "puller-1"
	h.add("waiting", waitingShape, 10, 10.2)
	h.orders["waiting"].cents = 5
	h.jobs["id-waiting"].Attempts[0].Outcome = installation.HowSnoozed
	h.runs["id-waiting"][0].how, h.runs["id-waiting"][0].in = installation.HowSnoozed, pulled.EventStep
	h.again("waiting", 12, 12.5)
	h.runs["id-waiting"][1].in = pulled.StepAfter
	out := pulled.Waited{Receipts: []string{"r1", "r2"}, Paid: pulled.Paid{Key: "waiting", Cents: 5}}
	for i := range pulled.Calls {
		key := pulled.CalledKey("waiting", i)
		h.add(key, calledShape, 11, 11.2)
		h.orders[key].caller, h.jobs["id-"+key].ParentID = "waiting", "id-waiting"
		out.Parts = append(out.Parts, pulled.Done{Key: key, Attempt: 1})
		h.jobs["id-"+key].Output = []byte(`{"key": "` + key + `", "attempt": 1}`)
	}
	h.output(out)
	for i, l := range []installation.Line{
		{What: installation.LineStep, Attempt: 1, Name: pulled.StepBefore, ID: "r1"},
		{What: installation.LineKept, Attempt: 1, Name: pulled.StepBefore, ID: "r1"},
		{What: installation.LineKept, Attempt: 2, Name: pulled.StepBefore, ID: "r1"},
		{What: installation.LineStep, Attempt: 2, Name: pulled.StepAfter, ID: "r2"},
		{What: installation.LineKept, Attempt: 2, Name: pulled.StepAfter, ID: "r2"},
	} {
		l.Job, l.At = "id-waiting", at(10+float64(i)/2)
		h.steps = append(h.steps, l)
	}
	for _, key := range []string{"forsaken", pulled.CalledKey("forsaken", 0)} {
		h.add(key, leftShape, 16, 16.2)
		delete(h.runs, "id-"+key)
		h.jobs["id-"+key].Status, h.jobs["id-"+key].Attempts = cancelled, nil
		h.stats[completed]--
		h.stats[cancelled]++
	}
	h.orders["forsaken"].shape = forsakenShape
	h.orders["forsaken.0"].caller, h.jobs["id-forsaken.0"].ParentID = "forsaken", "id-forsaken"
	h.add("together", togetherShape, 13, 13.2)
	h.jobs["id-together"].Attempts[0].Outcome = installation.HowFailed
	h.runs["id-together"][0].how = installation.HowFailed
	h.again("together", 14, 14.2)
	for i := range h.runs["id-together"] {
		h.runs["id-together"][i].beside = 3
	}
}

// output sets the output of the job that waited.
func (h *history) output(out pulled.Waited) {
	text, err := json.Marshal(out)
	if err != nil {
		panic(err) // texts and numbers
	}
	h.jobs["id-waiting"].Output = text
}

// outputs changes the output of the job that waited.
func (h *history) outputs(change func(*pulled.Waited)) {
	var out pulled.Waited
	if err := json.Unmarshal(h.jobs["id-waiting"].Output, &out); err != nil {
		panic(err) // it was made here
	}
	change(&out)
	h.output(out)
}

// stepAgain adds a run of the first step.
func (h *history) stepAgain(attempt int, seconds float64) {
	h.steps = append(h.steps, installation.Line{
		What: installation.LineStep, Job: "id-waiting", Attempt: attempt, Name: pulled.StepBefore, ID: "r3", At: at(seconds),
	})
}

// amend changes the batch.
func (h *history) amend(change func(*client.Batch)) {
	b := h.batches["batch"]
	change(&b)
	h.batches["batch"] = b
}

func shapeNamed(name string) *shape {
	for _, s := range shapes {
		if s.name == name {
			return s
		}
	}
	panic(name)
}

// add accepts a job a second and a half before its start, and has the first worker run it.
func (h *history) add(key string, s *shape, start, end float64) {
	asked := at(start - 1.5).Add(-s.delay)
	id := "id-" + key
	h.orders[key] = &order{key: key, shape: s, id: id, asked: asked, accepted: asked.Add(time.Second)}
	j := &job{JobID: id, Status: completed, Attempt: 1, Tags: []string{key}}
	h.jobs[id] = j
	h.attempt(id, 1, "w1", "completed")
	h.runs[id] = []run{{attempt: 1, key: key, start: at(start), end: at(end), how: installation.HowOK}}
	h.stats[completed]++
	h.records[id+".1"] = 1
}

func (h *history) attempt(id string, number int, worker, outcome string) {
	h.jobs[id].Attempts = append(h.jobs[id].Attempts, struct {
		Attempt   int
		WorkerID  string
		Outcome   string
		ErrorCode string
	}{number, worker, outcome, ""})
	h.jobs[id].Attempt = number
}

func (h *history) addTick(seconds float64) {
	name := schedules[0]
	key := name
	id := "id-tick-" + at(seconds).Format("05")
	h.jobs[id] = &job{JobID: id, Status: completed, Tags: []string{key}, Attempt: 1}
	h.jobs[id].Schedule = &struct {
		Name string
		At   time.Time
	}{name, at(seconds)}
	h.runs[id] = []run{{attempt: 1, key: key, start: at(seconds), end: at(seconds + 0.1), how: installation.HowOK}}
	h.ticks[name] = append(h.ticks[name], tick{At: at(seconds), Outcome: "fired", JobID: &id})
	h.stats[completed]++
}

// again runs a job again, on the second worker.
func (h *history) again(key string, start, end float64) {
	h.attempt("id-"+key, 2, "w2", "completed")
	h.runs["id-"+key] = append(h.runs["id-"+key], run{attempt: 2, key: key, start: at(start), end: at(end), how: installation.HowOK})
}

func TestAHistoryWithEveryPromiseKeptHasNoViolation(t *testing.T) {
	t.Parallel()
	for _, found := range fabricated().check().violations {
		t.Errorf("%+v", found)
	}
}

func TestEachBrokenPromiseIsFound(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rule  string
		plant func(h *history)
	}{
		"an accepted job is not there": {"nothing lost", func(h *history) {
			delete(h.jobs, "id-delayed")
			delete(h.runs, "id-delayed")
			h.stats[completed]--
		}},
		"a job has not ended": {"nothing lost", func(h *history) {
			h.jobs["id-delayed"].Status = "RUNNING"
			h.stats[completed]--
		}},
		"a job exists that was not submitted": {"nothing unaccepted", func(h *history) { delete(h.orders, "delayed") }},
		"something ran that is no job": {"nothing unaccepted", func(h *history) {
			h.runs["id-stranger"] = []run{{attempt: 1, key: "stranger", start: at(1), end: at(2), how: installation.HowOK}}
		}},
		"one key made two jobs": {"one job a key", func(h *history) {
			twin := *h.jobs["id-plain"]
			h.jobs["id-twin"], h.runs["id-twin"] = &twin, []run{{attempt: 1, key: "plain", start: at(1), end: at(2), how: installation.HowOK}}
			h.stats[completed]++
		}},
		"a job ended otherwise": {"ends", func(h *history) {
			h.jobs["id-delayed"].Status = cancelled
			h.stats[completed]--
			h.stats[cancelled]++
		}},
		"a job failed with another code": {"ends", func(h *history) {
			j := h.jobs["id-delayed"]
			h.orders["delayed"].shape = badParent
			j.Status, j.LastError = failed, &struct{ ErrorCode, Message string }{"WORKER.LOST", ""}
			h.stats[completed]--
			h.stats[failed]++
		}},
		"an attempt was started twice": {"no attempt twice", func(h *history) {
			h.runs["id-plain"] = append(h.runs["id-plain"], run{attempt: 1, key: "plain", start: at(2), end: at(3), how: installation.HowOK})
		}},
		"two attempts at once": {"no two attempts at once", func(h *history) { h.again("plain", 1.1, 1.5) }},
		"a delayed job came early": {"not before its time", func(h *history) {
			h.orders["delayed"].asked = at(5)
		}},
		"a start after a confirmed cancel": {"no start after a cancel", func(h *history) {
			h.orders["plain"].cancelled = at(0.9)
		}},
		"completed and never done":                     {"completed means done", func(h *history) { h.runs["id-plain"][0].how = installation.HowFailed }},
		"out of order":                                 {"order", func(h *history) { h.runs["id-second"][0].start = at(2.4) }},
		"over the limit":                               {"limit", func(h *history) { h.runs["id-limited-4"][0].start = at(6.9) }},
		"before its dependency":                        {"dependencies", func(h *history) { h.runs["id-child"][0].start = at(4.4) }},
		"failed fewer times than its output asked for": {"dependencies", func(h *history) { h.jobs["id-child"].Attempt = 2 }},
		"skipped, and it ran": {"dependencies", func(h *history) {
			h.runs["id-skipped"] = []run{{attempt: 1, key: "skipped", start: at(5), end: at(5.5), how: installation.HowOK}}
		}},
		"behind its checkpoint":             {"checkpoints", func(h *history) { h.runs["id-counting"][1].loaded-- }},
		"a checkpoint that nothing gave":    {"checkpoints", func(h *history) { h.runs["id-counting"][1].loaded++ }},
		"a first attempt with a checkpoint": {"checkpoints", func(h *history) { h.runs["id-plain"][0].loaded = 1 }},
		"completed before it had counted": {"checkpoints", func(h *history) {
			h.runs["id-counting"][0].saved, h.runs["id-counting"][1].loaded = 1, 1
		}},
		"a batch that is not there":    {"batches", func(h *history) { clear(h.batches) }},
		"a batch that ended otherwise": {"batches", func(h *history) { h.made[0].fails = true }},
		"a batch with too few jobs":    {"batches", func(h *history) { h.made[0].members = nil }},
		"a batch that has not ended":   {"batches", func(h *history) { h.amend(func(b *client.Batch) { b.FinishedAt = nil }) }},
		"a batch that nothing follows": {"batches", func(h *history) { h.amend(func(b *client.Batch) { b.FollowUpJobID = "" }) }},
		"a batch that the wrong job follows": {"batches", func(h *history) {
			h.amend(func(b *client.Batch) { b.FollowUpJobID = "id-plain" })
		}},
		"a batch that two jobs follow": {"batches", func(h *history) { h.made[0].other = h.orders["delayed"] }},
		"a follow-up of an open batch": {"batches", func(h *history) { h.runs["id-next"][0].start = at(7.9) }},
		"a member that is not there": {"batches", func(h *history) {
			h.made[0].members = []*order{{key: "lost", shape: memberShape}}
		}},
		"a stored step that runs again": {"steps", func(h *history) { h.stepAgain(2, 12) }},
		"two results of a step": {"steps", func(h *history) {
			h.stepAgain(1, 9)
			slices.SortStableFunc(h.steps, func(a, b installation.Line) int { return a.At.Compare(b.At) })
			h.steps[3].ID = "r3"
		}},
		"a result that no step returned": {"steps", func(h *history) {
			h.steps[0].ID = "another"
		}},
		"an output with another result of a step": {"steps", func(h *history) {
			h.outputs(func(out *pulled.Waited) { out.Receipts[1] = "r1" })
		}},
		"a call that made no job": {"calls", func(h *history) {
			delete(h.jobs, "id-waiting.1")
			delete(h.runs, "id-waiting.1")
			h.orders["waiting.1"].id = ""
			h.stats[completed]--
		}},
		"a call that made two jobs": {"calls", func(h *history) {
			twin := *h.jobs["id-waiting.1"]
			twin.JobID = "id-twin"
			h.jobs["id-twin"], h.runs["id-twin"] = &twin, h.runs["id-waiting.1"]
			h.stats[completed]++
		}},
		"a job whose caller was cancelled, and that has not ended": {"nothing lost", func(h *history) {
			h.jobs["id-forsaken.0"].Status = "SCHEDULED"
			h.stats[cancelled]--
		}},
		"a call that a cancelled job made twice": {"calls", func(h *history) {
			twin := *h.jobs["id-forsaken.0"]
			h.jobs["id-twin"] = &twin
			h.stats[cancelled]++
		}},
		"a call of another job": {"calls", func(h *history) { h.jobs["id-together"].ParentID = "id-waiting" }},
		"an output of another attempt of a called job": {"calls", func(h *history) {
			h.outputs(func(out *pulled.Waited) { out.Parts[1].Attempt = 2 })
		}},
		"outputs in another order": {"calls", func(h *history) {
			h.outputs(func(out *pulled.Waited) { slices.Reverse(out.Parts) })
		}},
		"the data of an event that does not count": {"events", func(h *history) {
			h.outputs(func(out *pulled.Waited) { out.Paid.Cents++ })
		}},
		"an event that came twice": {"events", func(h *history) {
			h.outputs(func(out *pulled.Waited) { out.Twice = true })
		}},
		"an output that is none": {"events", func(h *history) { h.jobs["id-waiting"].Output = nil }},
		"a job that was woken for nothing": {"wakes", func(h *history) {
			h.again("waiting", 13, 13.5)
			h.jobs["id-waiting"].Attempts[2].Attempt, h.jobs["id-waiting"].Attempts[2].Outcome = 3, installation.HowSnoozed
			again := &h.runs["id-waiting"][2]
			again.attempt, again.how, again.in = 3, installation.HowSnoozed, pulled.EventStep
		}},
		"a job of a batch that completed for another": {"settled", func(h *history) {
			h.jobs["id-together"].Attempts[0].Outcome = "completed"
			h.jobs["id-together"].Attempts[1].Outcome = "lost"
		}},
		"a job of a batch that failed for another": {"settled", func(h *history) {
			h.again("together", 15, 15.2)
			h.jobs["id-together"].Attempts[1].Outcome = installation.HowFailed
			h.jobs["id-together"].Attempts[2].Attempt, h.runs["id-together"][2].attempt = 3, 3
		}},
		"a job of a batch that was settled twice": {"settled", func(h *history) {
			h.again("together", 15, 15.2)
			h.jobs["id-together"].Attempts[2].Attempt, h.runs["id-together"][2].attempt = 3, 3
		}},
		"an attempt that timed out":             {"settled", func(h *history) { h.runs["id-together"][0].how = installation.HowCut }},
		"a snooze of a handler that had ended":  {"settled", func(h *history) { h.runs["id-waiting"][0].how = installation.HowOK }},
		"an end that was not delivered":         {"deliveries", func(h *history) { h.delivered = nil }},
		"an end that was delivered wrongly":     {"deliveries", func(h *history) { h.delivered[0].How = failed }},
		"an end of a job without a callbackUrl": {"deliveries", func(h *history) { h.orders["plain"].delivered = false }},
		"a tick that is missing":                {"ticks", func(h *history) { h.ticks[schedules[0]] = h.ticks[schedules[0]][1:] }},
		"a tick that came twice": {"ticks", func(h *history) {
			twin := *h.jobs["id-tick-10"]
			h.jobs["id-twin"], h.runs["id-twin"] = &twin, h.runs["id-tick-10"]
			h.stats[completed]++
		}},
		"a flood for one attempt": {"no floods", func(h *history) { h.records["id-plain.1"] = floodOfOne + 1 }},
		"a flood over all": {"no floods", func(h *history) {
			for i := range 3 * floodRoom {
				h.records["id-plain."+at(float64(i)).String()] = 1
			}
		}},
		"wrong statistics": {"statistics", func(h *history) { h.stats[completed]++ }},
		"a panic":          {"no panics", func(h *history) { h.logs = []string{"gateway-1: panic"} }},
		"an end by itself": {"processes live", func(h *history) {
			h.exits = []installation.Exit{{Process: "cron-1", At: at(9), State: "exit status 1"}}
		}},
		"a complaint": {"recovery and answers", func(h *history) { h.late = []string{"too late"} }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := fabricated()
			c.plant(h)
			v := h.check()
			if len(v.violations) == 0 {
				t.Fatal("nothing was found")
			}
			for _, found := range v.violations {
				if found.rule != c.rule {
					t.Errorf("found %+v, of another rule than %q", found, c.rule)
				}
			}
		})
	}
}

func TestWhatAFrozenOrCutOffWorkerDoesIsExcused(t *testing.T) {
	t.Parallel()
	for name, silence := range map[string]func(h *history){
		"frozen": func(h *history) { h.frozen = []installation.Interval{{What: "runjob-1", From: at(0.5), To: at(40)}} },
		"cut off": func(h *history) {
			h.faults = []*fault{{from: at(0.5), healed: at(40), cutOff: []string{"runjob-1"}}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := fabricated()
			h.again("plain", 1.1, 1.5)
			silence(h)
			if v := h.check(); len(v.violations) > 0 || v.excused != 1 {
				t.Errorf("%d excused, violations %+v", v.excused, v.violations)
			}
			h.frozen, h.faults = nil, nil
			h.frozen = []installation.Interval{{What: "runjob-3", From: at(0.5), To: at(40)}}
			if v := h.check(); len(v.violations) == 0 {
				t.Error("another worker's silence excused it")
			}
		})
	}
}

func TestWhatAPullWorkerDoesThatWasCutOffIsExcused(t *testing.T) {
	t.Parallel()
	for silent, excused := range map[string]bool{
		"puller-1": true, "gateway-2": true, "pull-1": true, "serve-2": true, "puller-2": false, "runjob-1": false,
	} {
		t.Run(silent, func(t *testing.T) {
			t.Parallel()
			h := fabricated()
			for _, key := range []string{"id-together", "id-waiting"} { // the first attempts end within the second ones
				h.jobs[key].Attempts[0].WorkerID, h.jobs[key].Attempts[1].WorkerID = "puller-1", "puller-1"
				h.runs[key][0].end = h.runs[key][1].start.Add(100 * time.Millisecond)
			}
			h.steps[0].Attempt, h.steps[1].Attempt = 2, 2
			h.stepAgain(1, 12.1)
			h.frozen = []installation.Interval{{What: silent, From: at(9.5), To: at(20)}}
			switch v := h.check(); {
			case excused && (len(v.violations) > 0 || v.excused != 3):
				t.Errorf("%d excused, violations %+v", v.excused, v.violations)
			case !excused && len(v.violations) != 3:
				t.Errorf("violations %+v", v.violations)
			}
		})
	}
}

func TestALongPauseOfEverythingWhileOneProcessIsFrozenIsFound(t *testing.T) {
	t.Parallel()
	ends := func(seconds ...float64) (lines []installation.Line) {
		for _, s := range seconds {
			lines = append(lines, installation.Line{What: installation.LineEnd, At: at(s)})
		}
		return lines
	}
	for name, c := range map[string]struct {
		lines []installation.Line
		alone bool
		want  int
	}{
		"it went on":                    {ends(0, 4, 9, 14, 20, 27), true, 0},
		"nothing ended to the heal":     {ends(0, 1, 27), true, 1},
		"two faults at a time may":      {ends(0, 1, 27), false, 0},
		"what comes after is no matter": {ends(0, 9, 18, 26, 60), true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &history{faults: []*fault{{from: at(0.5), healed: at(25), alone: c.alone}}}
			if h.measureGaps(c.lines); len(h.late) != c.want {
				t.Errorf("complaints: %v", h.late)
			}
		})
	}
}

func TestARunDrawsEachKindBeforeAnyTwice(t *testing.T) {
	t.Parallel()
	h := &installation.Installation{}
	kinds := allKinds(h)
	for seed := range uint64(50) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		due, drawn := shuffled(rnd, kinds), map[string]int{}
		doubled, lastBegan := 0, false
		for len(due) > 0 {
			var both []*kind
			if both, due = draw(rnd, due); len(both) == 2 {
				if doubled++; both[0].area == both[1].area {
					t.Fatalf("%s and %s come together", both[0].name, both[1].name)
				}
			}
			for _, k := range both {
				drawn[k.name]++
				lastBegan = lastBegan || k.last
				if lastBegan && !k.last {
					t.Fatalf("%s comes after one of those that come last", k.name)
				}
			}
		}
		if len(drawn) != len(kinds) || doubled == 0 {
			t.Fatalf("seed %d: %d of %d kinds, %d times two", seed, len(drawn), len(kinds), doubled)
		}
		for name, n := range drawn {
			if n != 1 {
				t.Fatalf("seed %d: %s was drawn %d times", seed, name, n)
			}
		}
	}
}

func TestALittleRunProvesNothing(t *testing.T) {
	t.Parallel()
	v, h := &verdict{}, fabricated()
	for i := range h.runs["id-together"] {
		h.runs["id-together"][i].beside = 1
	}
	h.checkHappened(v, fitsAll, []*kind{{name: "never made"}})
	for _, want := range []string{
		"at least", `"never made" was never made`, `no job of the shape "bulk"`, "no batch handler got two jobs together",
	} {
		found := false
		for _, f := range v.violations {
			found = found || strings.Contains(f.text, want)
		}
		if !found {
			t.Errorf("nothing returned %q: %+v", want, v.violations)
		}
	}
}

func TestAConnectionIsKnownByTheProcessThatHasIt(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_, port, _ := net.SplitHostPort(c.LocalAddr().String())
	inode, err := installation.SocketAt(port)
	if err != nil || !installation.Holds(os.Getpid(), inode) || installation.Holds(os.Getppid(), inode) {
		t.Errorf("socket %s of port %s: %v; it is ours", inode, port, err)
	}
}
