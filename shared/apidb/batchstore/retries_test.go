package batchstore_test

import (
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/apidb/batchstore"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// graphOf makes a flow in which each job comes after some of the earlier ones.
func (f fixture) graphOf(t testing.TB, rnd *rand.Rand) (flow uuid.UUID, graph []apibody.FlowJob) {
	t.Helper()
	asked := batchstore.NewBatch{ID: f.NewID(), Request: apibody.Batch{Closed: true}}
	for range 2 + rnd.IntN(8) {
		job := f.jobOf(asked.ID, "")
		node := apibody.FlowJob{JobID: job.JobID, After: []apibody.FlowEdge{}}
		for _, before := range graph {
			if rnd.IntN(3) == 0 {
				edge := apibody.FlowEdge{Name: "x", JobID: before.JobID, On: jobstate.Conditions()[rnd.IntN(3)]}
				node.After = append(node.After, edge)
				job.Request.After, job.Request.Conditions = append(job.Request.After, edge.JobID), append(job.Request.Conditions, edge.On)
			}
		}
		asked.Jobs, graph = append(asked.Jobs, job), append(graph, node)
	}
	asked.Graph = graph
	if _, err := f.Batches.Create(t.Context(), nil, asked); err != nil {
		t.Fatal(err)
	}
	return asked.ID, graph
}

// run returns how the jobs of a graph end. Those in kept have completed before; a job that cannot run stays as it was,
// at first CANCELLED.
func run(graph []apibody.FlowJob, before map[uuid.UUID]jobstate.Status, ends []jobstate.Status) map[uuid.UUID]jobstate.Status {
	after := map[uuid.UUID]jobstate.Status{}
	for i, job := range graph {
		end := ends[i]
		for _, edge := range job.After {
			if !edge.On.Met(after[edge.JobID]) {
				end = jobstate.Cancelled
				if before != nil {
					end = before[job.JobID]
				}
				break
			}
		}
		if before[job.JobID] == jobstate.Completed {
			end = jobstate.Completed
		}
		after[job.JobID] = end
	}
	return after
}

func randomEnds(rnd *rand.Rand, n int) []jobstate.Status {
	ends := make([]jobstate.Status, n)
	for i := range ends {
		ends[i] = []jobstate.Status{jobstate.Completed, jobstate.Completed, jobstate.Failed, jobstate.Cancelled}[rnd.IntN(4)]
	}
	return ends
}

// hasCompensation reports whether a job completed that waits for the failure of one that did not.
func hasCompensation(graph []apibody.FlowJob, ends map[uuid.UUID]jobstate.Status) bool {
	for _, job := range graph {
		for _, edge := range job.After {
			if edge.On == jobstate.WhenFailed && ends[job.JobID] == jobstate.Completed && ends[edge.JobID] != jobstate.Completed {
				return true
			}
		}
	}
	return false
}

// Whatever the graph and the ends, a retry runs those jobs again that had not completed and whose conditions are met
// now, each after the ones before it, and the flow ends once more.
func TestAFlowIsRetriedInTheOrderOfItsGraph(t *testing.T) {
	t.Parallel()
	f := open(t)
	seed := uint64(time.Now().UnixNano())
	for round := range uint64(24) {
		rnd := rand.New(rand.NewPCG(seed, round))
		flow, graph := f.graphOf(t, rnd)
		first := run(graph, nil, randomEnds(rnd, len(graph)))
		for _, job := range graph {
			f.become(t, job.JobID, first[job.JobID])
		}
		f.sweep(t)
		ended := f.batch(t, flow)
		if !ended.Finished() {
			t.Fatalf("seed %d, round %d: it has not ended", seed, round)
		}
		_, err := f.Batches.RetryFlow(t.Context(), nil, apidb.Everyone, flow)
		if ended.Status == batchstore.Completed {
			if err == nil {
				t.Errorf("seed %d, round %d: a completed flow is retried", seed, round)
			}
			continue
		}
		if codeOf(err) == apierror.FlowCompensated && hasCompensation(graph, first) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		ends := randomEnds(rnd, len(graph))
		want, now := run(graph, first, ends), map[uuid.UUID]jobstate.Status{}
		for range 50 * len(graph) { // each time, a job that runs ends with a probability of one half
			f.sweep(t)
			f.operate(t)
			for i, job := range graph {
				state := f.ReadJob(t, job.JobID).Status
				if state == jobstate.Pending {
					for _, edge := range job.After {
						if end := f.ReadJob(t, edge.JobID).Status; !end.Terminal() || !edge.On.Met(end) {
							t.Errorf("seed %d, round %d: job %d runs before another one has ended, which is %s", seed, round, i, end)
						}
					}
					if rnd.IntN(2) == 0 {
						state = ends[i]
						f.become(t, job.JobID, state)
					}
				}
				now[job.JobID] = state
			}
			if got := f.batch(t, flow); got.Finished() {
				break
			}
		}
		if got := f.batch(t, flow); !got.Finished() {
			t.Fatalf("seed %d, round %d: it does not end again: %v", seed, round, got.Counts)
		}
		for i, job := range graph {
			if now[job.JobID] != want[job.JobID] {
				t.Errorf("seed %d, round %d: job %d of %d is %s, was %s, want %s", seed, round, i, len(graph), now[job.JobID], first[job.JobID], want[job.JobID])
			}
		}
	}
}

// A job outside the flow is retried first, and takes its time.
func TestARetryOfAFlowWaitsForAJobOutsideIt(t *testing.T) {
	t.Parallel()
	for _, end := range []jobstate.Status{jobstate.Completed, jobstate.Failed} {
		f := open(t)
		outside := f.Accept(t, apidbtest.NewJob()).JobID
		asked := batchstore.NewBatch{ID: f.NewID(), Request: apibody.Batch{Closed: true}}
		job := f.jobOf(asked.ID, "")
		job.Request.After = []uuid.UUID{outside}
		asked.Jobs = []jobstore.NewJob{job}
		asked.Graph = []apibody.FlowJob{{JobID: job.JobID, After: []apibody.FlowEdge{{JobID: outside, On: jobstate.WhenCompleted}}}}
		if _, err := f.Batches.Create(t.Context(), nil, asked); err != nil {
			t.Fatal(err)
		}
		f.become(t, outside, jobstate.Failed)
		f.become(t, job.JobID, jobstate.Cancelled)
		f.sweep(t)
		f.become(t, outside, jobstate.Running)
		if _, err := f.Batches.RetryFlow(t.Context(), nil, apidb.Everyone, asked.ID); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			f.sweep(t)
			f.operate(t)
		}
		if got := f.batch(t, asked.ID); got.Finished() {
			t.Errorf("the flow is %s while the job before it runs", got.Status)
		}
		f.become(t, outside, end)
		for range 3 {
			f.sweep(t)
			f.operate(t)
		}
		runs := f.ReadJob(t, job.JobID).Status == jobstate.Pending
		if got := f.batch(t, asked.ID); runs != (end == jobstate.Completed) || got.Finished() == runs {
			t.Errorf("the job before it is %s, its job runs: %v, the flow is %s", end, runs, got.Status)
		}
	}
}

// The failed jobs of elements run again before their fan-out waits for them again.
func TestAFanOutIsRetriedAfterItsElements(t *testing.T) {
	t.Parallel()
	f := open(t)
	flow, id := f.fanOut(t, "[1, 2]")
	jobs, err := f.Batches.Expand(t.Context(), elementRules, id)
	if err != nil {
		t.Fatal(err)
	}
	f.become(t, jobs[0].JobID, jobstate.Completed)
	f.become(t, jobs[1].JobID, jobstate.Failed)
	f.become(t, id, jobstate.Failed)
	f.sweep(t)
	if n, err := f.Batches.RetryFlow(t.Context(), nil, apidb.Everyone, flow); err != nil || n != 2 {
		t.Fatalf("%d jobs run again, %v", n, err)
	}
	for step, want := range [][2]jobstate.Status{{jobstate.Failed, jobstate.Pending}, {jobstate.Failed, jobstate.Completed}, {jobstate.Pending, jobstate.Completed}} {
		if step == 1 {
			f.become(t, jobs[1].JobID, jobstate.Completed)
		} else {
			f.sweep(t)
			f.operate(t)
		}
		if got := [2]jobstate.Status{f.ReadJob(t, id).Status, f.ReadJob(t, jobs[1].JobID).Status}; got != want {
			t.Errorf("step %d: the fan-out and its job are %v, want %v", step, got, want)
		}
	}
}

// flow makes a flow of jobs with these names, each after those that follow its name, as "ship charge:failed".
func (f fixture) flow(t testing.TB, jobs ...string) (uuid.UUID, map[string]uuid.UUID) {
	t.Helper()
	asked := batchstore.NewBatch{ID: f.NewID(), Request: apibody.Batch{Closed: true}}
	ids := map[string]uuid.UUID{}
	for _, text := range jobs {
		job := f.jobOf(asked.ID, "")
		words := strings.Fields(text)
		node := apibody.FlowJob{Name: words[0], JobID: job.JobID, After: []apibody.FlowEdge{}}
		for _, word := range words[1:] {
			name, on, given := strings.Cut(word, ":")
			if !given {
				on = "completed"
			}
			node.After = append(node.After, apibody.FlowEdge{Name: name, JobID: ids[name], On: jobstate.Condition(on)})
			job.Request.After = append(job.Request.After, ids[name])
			job.Request.Conditions = append(job.Request.Conditions, jobstate.Condition(on))
		}
		ids[words[0]] = job.JobID
		asked.Jobs, asked.Graph = append(asked.Jobs, job), append(asked.Graph, node)
	}
	if _, err := f.Batches.Create(t.Context(), nil, asked); err != nil {
		t.Fatal(err)
	}
	return asked.ID, ids
}

func (f fixture) states(t testing.TB, ids map[string]uuid.UUID) string {
	t.Helper()
	var all []string
	for _, name := range slices.Sorted(maps.Keys(ids)) {
		all = append(all, name+" "+string(f.ReadJob(t, ids[name]).Status))
	}
	return strings.Join(all, ", ")
}

func codeOf(err error) apierror.Code {
	if refused := (*apierror.Error)(nil); errors.As(err, &refused) {
		return refused.Code
	}
	return ""
}

func TestARetryIsRefusedOnceACompensationHasRun(t *testing.T) {
	t.Parallel()
	f := open(t)
	jobs := []string{"charge", "ship charge", "refund charge ship:failed", "tidy ship:ended"}
	for _, c := range []struct {
		name string
		ends []jobstate.Status
		want apierror.Code
	}{
		{"it has completed", []jobstate.Status{jobstate.Completed, jobstate.Failed, jobstate.Completed, jobstate.Completed}, apierror.FlowCompensated},
		{"it has yet to run", []jobstate.Status{jobstate.Completed, jobstate.Failed, jobstate.Pending, jobstate.Completed}, apierror.FlowCompensated},
		{"it runs", []jobstate.Status{jobstate.Completed, jobstate.Cancelled, jobstate.Running, jobstate.Completed}, apierror.FlowCompensated},
		{"it has failed", []jobstate.Status{jobstate.Completed, jobstate.Failed, jobstate.Failed, jobstate.Completed}, ""},
		{"it was skipped, and what runs whatever happens has failed", []jobstate.Status{jobstate.Completed, jobstate.Completed, jobstate.Cancelled, jobstate.Failed}, ""},
		{"only what runs whatever happens has run", []jobstate.Status{jobstate.Completed, jobstate.Failed, jobstate.Cancelled, jobstate.Completed}, ""},
	} {
		flow, ids := f.flow(t, jobs...)
		for i, name := range []string{"charge", "ship", "refund", "tidy"} {
			f.become(t, ids[name], c.ends[i])
		}
		f.sweep(t)
		before := f.batch(t, flow).Status
		if _, err := f.Batches.RetryFlow(t.Context(), nil, apidb.Everyone, flow); codeOf(err) != c.want || (err != nil) != (c.want != "") {
			t.Errorf("%s: the retry gets %v, want %q", c.name, err, c.want)
		}
		if got := f.batch(t, flow).Status; c.want != "" && got != before {
			t.Errorf("%s: the flow, which was %s, is %s after the refusal", c.name, before, got)
		}
	}
}

// A retry of the flow keeps the jobs after "a" back while the retry of "a" by another request is not answered yet,
// though "a" is shown as FAILED.
func TestARetryOfAFlowGoesOnBesideARetryOfOneOfItsJobs(t *testing.T) {
	t.Parallel()
	for _, flowFirst := range []bool{true, false} {
		f := open(t)
		flow, ids := f.flow(t, "a", "b a", "c b")
		for name, end := range map[string]jobstate.Status{"a": jobstate.Failed, "b": jobstate.Cancelled, "c": jobstate.Cancelled} {
			f.become(t, ids[name], end)
		}
		f.sweep(t)
		retryFlow := func() {
			if _, err := f.Batches.RetryFlow(t.Context(), nil, apidb.Everyone, flow); err != nil {
				t.Fatal(err)
			}
		}
		if flowFirst {
			retryFlow()
			f.sweep(t) // hands "a" to an operation
		}
		single, err := f.Commands.KeepCommand(t.Context(), nil, apidb.Everyone, ids["a"], jobevent.CommandRetry, "")
		if err != nil {
			t.Fatal(err)
		}
		if !flowFirst {
			retryFlow()
		}
		for range 3 {
			f.operate(t)
			f.sweep(t)
		}
		f.Apply(t, apidbtest.Status(ids["a"], single.Version+1, jobstate.Pending, func(s *jobevent.Status) {
			s.LastCommand = &jobevent.CommandResult{Number: single.Number, Command: single.Command, Applied: true}
		}))
		for _, name := range []string{"a", "b", "c"} {
			f.become(t, ids[name], jobstate.Completed)
			f.sweep(t)
			f.operate(t)
			f.sweep(t)
		}
		if got, states := f.batch(t, flow), f.states(t, ids); got.Status != batchstore.Completed {
			t.Errorf("flow first: %v: the flow is %s, its jobs are %s", flowFirst, got.Status, states)
		}
	}
}
