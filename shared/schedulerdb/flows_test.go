package schedulerdb

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/emit"
)

// graph is a random flow: each job comes after some of the earlier ones.
type graph struct {
	*rand.Rand
	jobs []jobevent.Created
	ends map[uuid.UUID]jobstate.Status // how each job ends if it runs
}

func newGraph(r *rand.Rand) *graph {
	g := &graph{Rand: r, jobs: newJobs(2 + r.IntN(12)), ends: map[uuid.UUID]jobstate.Status{}}
	for i := range g.jobs {
		job := &g.jobs[i]
		job.MaxRetryCount = 0
		job.RunAnyway = r.IntN(4) == 0
		if r.IntN(4) == 0 {
			job.Queue = jobevent.FanOutQueue
		}
		for _, before := range g.jobs[:i] {
			if r.IntN(3) == 0 {
				job.After = append(job.After, before.JobID)
			}
		}
		if r.IntN(4) > 0 {
			for range job.After {
				job.Conditions = append(job.Conditions, jobstate.Conditions()[r.IntN(3)])
			}
		}
		g.ends[job.JobID] = []jobstate.Status{jobstate.Completed, jobstate.Completed, jobstate.Failed, jobstate.Cancelled}[r.IntN(4)]
	}
	return g
}

// model returns how each job has to end: it ends as it would if it runs, and as CANCELLED if it never can.
func (g *graph) model() map[uuid.UUID]jobstate.Status {
	ended := map[uuid.UUID]jobstate.Status{}
	for _, job := range g.jobs {
		ended[job.JobID] = g.ends[job.JobID]
		for i, id := range job.After {
			if !g.meets(job, i, ended[id]) {
				ended[job.JobID] = jobstate.Cancelled
			}
		}
	}
	return ended
}

// meets has the rule in the words of the documentation.
func (g *graph) meets(job jobevent.Created, i int, end jobstate.Status) bool {
	condition := jobstate.WhenCompleted
	if job.RunAnyway {
		condition = jobstate.WhenEnded
	}
	if job.Conditions != nil {
		condition = job.Conditions[i]
	}
	switch condition {
	case jobstate.WhenEnded:
		return true
	case jobstate.WhenFailed:
		return end == jobstate.Failed || end == jobstate.Cancelled
	case jobstate.WhenCompleted:
		return end == jobstate.Completed
	}
	return false
}

func (g *graph) outcome(run emit.RunOrder) Outcome {
	outcome := completed(jobevent.Created{JobID: run.JobID}, int(run.Attempt))
	switch g.ends[run.JobID] { //nolint:exhaustive // jobs end in these
	case jobstate.Failed:
		outcome.Kind, outcome.ErrorCode = jobstate.KindFailed, "DEMO"
	case jobstate.Cancelled:
		outcome.Kind = jobstate.KindCancelled
	}
	return outcome
}

// fanOutsDue returns outcomes as the API reports them, for the fan-outs whose conditions are met.
func (g *graph) fanOutsDue(h fixture, settled map[uuid.UUID]bool, arrived []jobevent.Created) (due []Outcome) {
	ended := map[uuid.UUID]jobstate.Status{}
	for _, job := range arrived {
		if got := jobstate.Status(h.status(job).Status); got.Terminal() {
			ended[job.JobID] = got
		}
	}
	for _, job := range arrived {
		is := job.IsFanOut() && !settled[job.JobID]
		for i, id := range job.After {
			is = is && ended[id] != "" && g.meets(job, i, ended[id])
		}
		if is {
			outcome := g.outcome(emit.RunOrder{JobID: job.JobID, Attempt: 1})
			outcome.WorkerID, outcome.StartedAt = "", nil
			due = append(due, outcome)
		}
	}
	return due
}

// Whatever the graph, the conditions, the outcomes and the order in which jobs arrive and end, exactly those jobs run
// whose conditions are met, and all others are cancelled.
func TestJobsOfAFlowRunWhenTheirConditionsAreMet(t *testing.T) {
	h := roomy(t)
	seed := time.Now().UnixNano()
	for round := range 40 {
		g := newGraph(rand.New(rand.NewPCG(uint64(seed), uint64(round))))
		var out []emit.RunOrder
		ran := map[uuid.UUID]bool{}
		arriving := append([]jobevent.Created{}, g.jobs...)
		g.Shuffle(len(arriving), func(i, j int) { arriving[i], arriving[j] = arriving[j], arriving[i] })
		var arrived []jobevent.Created
		settleFanOuts := func() {
			for due := g.fanOutsDue(h, ran, arrived); len(due) > 0; due = g.fanOutsDue(h, ran, arrived) {
				for _, outcome := range due {
					ran[outcome.JobID] = true
				}
				out = append(out, h.settle(due...).Runs...)
			}
		}
		for len(arriving) > 0 || len(out) > 0 {
			if n := min(1+g.IntN(4), len(arriving)); n > 0 && (len(out) == 0 || g.IntN(2) == 0) {
				out = append(out, h.ingest(arriving[:n]...).Runs...)
				arrived, arriving = append(arrived, arriving[:n]...), arriving[n:]
				settleFanOuts()
				continue
			}
			i := g.IntN(len(out))
			run := out[i]
			out = append(out[:i], out[i+1:]...)
			if ran[run.JobID] {
				t.Fatalf("seed %d, round %d: job %s runs twice", seed, round, run.JobID)
			}
			ran[run.JobID] = true
			out = append(out, h.settle(g.outcome(run)).Runs...)
			settleFanOuts()
		}
		for i, job := range g.jobs {
			want := g.model()[job.JobID]
			got := h.status(job)
			if got.Status != string(want) {
				t.Errorf("seed %d, round %d: job %d of %d is %s, want %s: %+v", seed, round, i, len(g.jobs), got.Status, want, job)
			}
			if !ran[job.JobID] && (got.LastError == nil || got.LastError.ErrorCode != "SCHEDULER.DEPENDENCY_FAILED") {
				t.Errorf("seed %d, round %d: job %d did not run, and shows %+v", seed, round, i, got.LastError)
			}
		}
	}
	h.wantNothingLeft()
}

func TestABadNumberOfConditionsIsInvalid(t *testing.T) {
	h := roomy(t)
	job := after(newJob())
	job.Conditions = []jobstate.Condition{jobstate.WhenEnded, jobstate.WhenEnded}
	if _, err := h.Ingest(t.Context(), []jobevent.Created{job}); err == nil {
		t.Error("it is accepted")
	}
}

// parents returns what a run order carries.
func (h fixture) parents(runs []emit.RunOrder, of jobevent.Created) (parents []jobevent.Parent) {
	h.Helper()
	for _, run := range runs {
		if run.JobID == of.JobID {
			if err := json.Unmarshal(run.Parents, &parents); err != nil {
				h.Fatalf("%s: %v", run.Parents, err)
			}
			return parents
		}
	}
	h.Fatalf("no attempt of %s goes out", of.JobID)
	return nil
}

func completedWith(run emit.RunOrder, output string) Outcome {
	o := completed(jobevent.Created{JobID: run.JobID}, int(run.Attempt))
	if output != "" {
		o.Output = json.RawMessage(output)
	}
	return o
}

func using(parents ...jobevent.Created) jobevent.Created {
	job := after(parents...)
	for i, parent := range parents {
		job.Inputs = append(job.Inputs, jobevent.Input{Name: fmt.Sprint("p", i), JobID: parent.JobID})
	}
	return job
}

func TestARunOrderCarriesTheOutputsOfParents(t *testing.T) {
	h := roomy(t)
	a, b := newJob(), newJob()
	child := using(a, b)
	runs := h.ingest(a, b, child).Runs
	h.settle(completedWith(runs[0], `{"n": 12345678901234567890}`))
	want := func(runs []emit.RunOrder, of jobevent.Created) {
		t.Helper()
		parents := h.parents(runs, of)
		if len(parents) != 2 {
			t.Fatalf("it carries %+v", parents)
		}
		for i, p := range parents {
			output := "null"
			if p.JobID == a.JobID {
				output = `{"n": 12345678901234567890}`
			}
			if p.Name != fmt.Sprint("p", i) || p.Attempt != 1 || string(p.Output) != output {
				t.Errorf("parent %d is %+v with %s", i, p, p.Output)
			}
		}
	}
	want(h.settle(completedWith(runs[1], "")).Runs, child)
	late := using(a, b)
	want(h.ingest(newJob(), late, newJob()).Runs, late)
	h.exec("UPDATE jobs SET lease_expires_at = now() - interval '1 s' WHERE job_id = $1", child.JobID)
	want(h.askAgain(0).Runs, child) // the watchdog's question is the same order
}

func TestARunOrderCarriesNoOutputsThatAreTooLargeOrMissing(t *testing.T) {
	h := roomy(t)
	a, b, failing := newJob(), newJob(), newJob()
	failing.MaxRetryCount = 0
	large := `"` + strings.Repeat("x", 256<<10) + `"`
	runs := h.ingest(a, b, failing).Runs
	failed := completedWith(runs[2], "")
	failed.Kind, failed.ErrorCode = jobstate.KindFailed, "DEMO"
	h.settle(completedWith(runs[0], large), completedWith(runs[1], large), failed)
	both := using(a, b)
	for _, p := range h.parents(h.ingest(both).Runs, both) {
		if p.Attempt != 1 || len(p.Output) > 0 && string(p.Output) != "null" || p.OutputBytes != 2*int64(len(large)) {
			t.Errorf("it carries %d of %d bytes of attempt %d", len(p.Output), p.OutputBytes, p.Attempt)
		}
	}
	one := using(a)
	if p := h.parents(h.ingest(one).Runs, one); string(p[0].Output) != large {
		t.Errorf("it carries %d bytes", len(p[0].Output))
	}
	anyway := using(failing)
	anyway.RunAnyway = true
	if p := h.parents(h.ingest(anyway).Runs, anyway); p[0].Attempt != 0 {
		t.Errorf("of a failed parent it carries %+v", p[0])
	}
}

// A fan-out is never dispatched. A cancel ends it at once, and a retry has it wait for a report on a further attempt.
func TestAFanOutWaitsForTheAPI(t *testing.T) {
	h := roomy(t)
	job := newJob()
	job.Queue = jobevent.FanOutQueue
	e := h.ingest(job)
	if len(e.Runs) > 0 || len(e.Jobs) != 1 || e.Jobs[0].Status != string(jobstate.Waiting) || e.Jobs[0].Attempt != 1 {
		t.Fatalf("it begins as %+v", e)
	}
	h.order(job, 1, jobevent.CommandCancel)
	if got := h.status(job); got.Status != string(jobstate.Cancelled) {
		t.Fatalf("the cancelled one is %+v", got)
	}
	e = h.order(job, 2, jobevent.CommandRetry)
	if got := h.status(job); len(e.Runs) > 0 || got.Status != string(jobstate.Waiting) || got.Attempt != 2 {
		t.Fatalf("the retried one is %+v", got)
	}
	if got := h.settle(completedWith(emit.RunOrder{JobID: job.JobID, Attempt: 1}, "[]")); h.status(job).Status != string(jobstate.Waiting) {
		t.Errorf("after a late report on the first attempt it is %+v", got.Jobs)
	}
	h.settle(completedWith(emit.RunOrder{JobID: job.JobID, Attempt: 2}, "[1]"))
	if got := h.status(job); got.Status != string(jobstate.Completed) || string(got.Output) != "[1]" {
		t.Errorf("it ends as %+v", got)
	}
	h.wantNothingLeft()
}

func TestEachRunOrderCarriesTheEventOfItsJob(t *testing.T) {
	h := roomy(t)
	const event = `{"id": "1", "source": "/shop"}`
	later, parent := time.Now().Add(-time.Second), newJob()
	plain, first, due, child := newJob(), newJob(), newJob(), using(parent)
	first.Event, due.Event, child.Event, due.RunAt = json.RawMessage(event), json.RawMessage(event), json.RawMessage(event), &later
	child.MaxRetryCount = 1
	want := func(runs []emit.RunOrder, job jobevent.Created, want string) emit.RunOrder {
		t.Helper()
		for _, run := range runs {
			if run.JobID != job.JobID {
				continue
			}
			items, err := emit.Effects{Runs: []emit.RunOrder{run}}.Events("dispatch")
			if err != nil || string(run.Event) != want || strings.Contains(string(items[0].Data()), "event") != (want != "") {
				t.Errorf("attempt %d carries the event %s in %s, %v", run.Attempt, run.Event, items[0].Data(), err)
			}
			return run
		}
		t.Fatalf("no attempt goes out: %+v", runs)
		return emit.RunOrder{}
	}
	runs := h.ingest(plain, first, due, parent, child).Runs
	runs = append(runs, h.due().Runs...)
	want(runs, plain, "")
	want(runs, first, event)
	want(runs, due, event)
	started := h.settle(completedWith(want(runs, parent, ""), `1`)).Runs
	run := want(started, child, event)
	h.exec("UPDATE jobs SET lease_expires_at = now() - interval '1 s' WHERE job_id = $1", child.JobID)
	want(h.askAgain(0).Runs, child, event)
	again := ended(child, int(run.Attempt), jobstate.KindFailed)
	again.Retryable = true
	h.settle(again)
	h.tamper("UPDATE jobs SET due_at = now() WHERE status = 'RETRYING'")
	want(h.due().Runs, child, event)
}
