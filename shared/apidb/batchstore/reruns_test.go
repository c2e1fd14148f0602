package batchstore_test

import (
	"context"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/apidb/batchstore"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/apidb/operationstore"
	"github.com/jobweaver/jobweaver/shared/apidb/statusstore"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// again has jobs of a flow run again as new ones, and returns the ids that the names have then.
func (f fixture) again(ctx context.Context, flow uuid.UUID, asked apibody.FlowRetry) (map[string]uuid.UUID, error) {
	_, _, err := f.Batches.RunFlowAgain(ctx, nil, apidb.Everyone, flow, batchstore.Rerun{
		FlowRetry: asked, NewID: f.NewID,
		Make: func(id, _ uuid.UUID, req jobspec.Request) (jobstore.NewJob, error) {
			return jobstore.NewJob{JobID: id, TraceID: uuid.New(), Request: req.FanOut(), Whose: apidb.Everyone}, nil
		},
	})
	if err != nil {
		return nil, err
	}
	got, err := f.Batches.Get(ctx, apidb.Everyone, flow)
	ids := map[string]uuid.UUID{}
	for _, job := range got.Graph {
		ids[job.Name] = job.JobID
	}
	return ids, err
}

// end has the jobs of a flow end in one way each, and ends the flow.
func (f fixture) end(t testing.TB, ids map[string]uuid.UUID, as map[string]jobstate.Status) {
	t.Helper()
	for name, state := range as {
		f.become(t, ids[name], state)
	}
	f.sweep(t)
}

// forget deletes jobs, as the scheduler has.
func (f fixture) forget(t testing.TB, ids ...uuid.UUID) {
	t.Helper()
	var gone []statusstore.Gone
	for _, id := range ids {
		gone = append(gone, statusstore.Gone{JobID: id, Version: f.ReadJob(t, id).Version + 1})
	}
	if _, err := f.Statuses.ForgetJobs(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
}

var shop = []string{"charge", "ship charge", "refund charge ship:failed", "mail ship"}

func refunded() map[string]jobstate.Status {
	return map[string]jobstate.Status{
		"charge": jobstate.Completed, "ship": jobstate.Failed, "refund": jobstate.Completed, "mail": jobstate.Cancelled,
	}
}

func shipped() map[string]jobstate.Status {
	return map[string]jobstate.Status{
		"charge": jobstate.Completed, "ship": jobstate.Completed, "refund": jobstate.Cancelled, "mail": jobstate.Completed,
	}
}

func TestAFlowRunsAgainAsAWholeOrFromAJobOn(t *testing.T) {
	t.Parallel()
	f := open(t)
	for _, c := range []struct {
		name  string
		asked apibody.FlowRetry
		stays []string
	}{
		{"all", apibody.FlowRetry{All: true}, nil},
		{"from ship", apibody.FlowRetry{From: []string{"ship"}}, []string{"charge"}},
		{"from mail and refund", apibody.FlowRetry{From: []string{"mail", "refund"}}, []string{"charge", "ship"}},
	} {
		flow, first := f.flow(t, shop...)
		f.end(t, first, refunded())
		before := f.batch(t, flow)
		second, err := f.again(t.Context(), flow, c.asked)
		if err != nil {
			t.Fatal(c.name, err)
		}
		ends := shipped()
		for name, id := range second {
			if kept := slices.Contains(c.stays, name); kept != (id == first[name]) {
				t.Errorf("%s: %s has a new job: %v", c.name, name, id != first[name])
			} else if kept {
				delete(ends, name)
				continue
			}
			job := f.ReadJob(t, id)
			if job.RunAgainOf != first[name] || job.BatchID != flow || job.Status != jobstate.Pending {
				t.Errorf("%s: the new job of %s is %+v", c.name, name, job)
			}
			for _, before := range job.After {
				if !slices.Contains(slices.Collect(maps.Values(second)), before) {
					t.Errorf("%s: %s comes after a job that is not of this run", c.name, name)
				}
			}
		}
		if got := f.batch(t, flow); got.Status != batchstore.Running || got.Run != 2 || len(got.EarlierRuns) != 1 || got.Counts.Total() != 4 {
			t.Errorf("%s: the flow is %s, run %d, %v, after %v", c.name, got.Status, got.Run, got.Counts, got.EarlierRuns)
		} else if run := got.EarlierRuns[0]; run.Run != 1 || run.Status != before.Status || run.Counts[jobstate.Failed] != 1 || !run.FinishedAt.Equal(*before.FinishedAt) {
			t.Errorf("%s: the earlier run is %+v, want that of %+v", c.name, run, before)
		}
		f.end(t, second, ends)
		want := batchstore.Completed
		if slices.Contains(c.stays, "ship") {
			want = batchstore.Failed // it has failed, and stays so
		}
		if got := f.batch(t, flow); got.Status != want || got.Counts.Total() != 4 {
			t.Errorf("%s: the flow ends as %s with %v", c.name, got.Status, got.Counts)
		}
		for name, state := range refunded() {
			if job := f.ReadJob(t, first[name]); job.Status != state {
				t.Errorf("%s: the %s of the first run is %s", c.name, name, job.Status)
			}
		}
	}
}

func TestAReplacedJobIsNotRetried(t *testing.T) {
	t.Parallel()
	f := open(t)
	flow, first := f.flow(t, shop...)
	f.end(t, first, refunded())
	second, err := f.again(t.Context(), flow, apibody.FlowRetry{All: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Commands.KeepCommand(t.Context(), nil, apidb.Everyone, first["ship"], jobevent.CommandRetry, ""); codeOf(err) != apierror.InvalidStateTransition {
		t.Errorf("a retry of the old job gets %v", err)
	}
	op, _, err := f.Operations.InsertOperation(t.Context(), operationstore.NewOperation{
		ID: f.NewID(), Whose: apidb.Everyone,
		Request: apibody.Operation{Command: jobevent.CommandRetry, Filter: &apibody.Filter{BatchID: &flow}},
	})
	if err != nil {
		t.Fatal(err)
	}
	f.operate(t)
	if got, err := f.Operations.Operation(t.Context(), apidb.Everyone, op.ID); err != nil || got.Asked != 0 || got.Skipped != 2 {
		t.Errorf("an operation retries %d of them and skips %d, %v", got.Asked, got.Skipped, err)
	}
	ends := shipped()
	ends["ship"], ends["refund"], ends["mail"] = jobstate.Failed, jobstate.Failed, jobstate.Cancelled
	f.end(t, second, ends)
	if n, err := f.Batches.RetryFlow(t.Context(), nil, apidb.Everyone, flow); err != nil || n != 3 {
		t.Errorf("a retry of the flow runs %d jobs again, %v", n, err)
	}
}

// A new fan-out makes jobs for the elements of the new output; the old ones keep theirs.
func TestAFanOutRunsAgainWithNewElements(t *testing.T) {
	t.Parallel()
	f := open(t)
	flow, id := f.fanOut(t, "[1, 2]")
	jobs, err := f.Batches.Expand(t.Context(), elementRules, id)
	if err != nil || len(jobs) != 2 {
		t.Fatal(jobs, err)
	}
	f.become(t, jobs[0].JobID, jobstate.Completed)
	f.become(t, jobs[1].JobID, jobstate.Failed)
	f.become(t, id, jobstate.Failed)
	f.sweep(t)
	ids, err := f.again(t.Context(), flow, apibody.FlowRetry{From: []string{"each"}})
	if err != nil {
		t.Fatal(err)
	}
	again, err := f.Batches.Expand(t.Context(), elementRules, ids["each"])
	if err != nil || len(again) != 2 {
		t.Fatal(again, err)
	}
	if _, err := f.Commands.KeepCommand(t.Context(), nil, apidb.Everyone, jobs[1].JobID, jobevent.CommandRetry, ""); codeOf(err) != apierror.InvalidStateTransition {
		t.Errorf("a retry of an old element gets %v", err)
	}
	const total = 4
	if got := f.batch(t, flow).Counts; got.Total() != total || got[jobstate.Failed] != 0 {
		t.Errorf("the flow counts %v", got)
	}
	f.forget(t, jobs[0].JobID, jobs[1].JobID, id)
	if got := f.batch(t, flow).Counts; got.Total() != total || got[jobstate.Failed] != 0 {
		t.Errorf("without the jobs of the first run, the flow counts %v", got)
	}
	for _, job := range again {
		f.become(t, job.JobID, jobstate.Completed)
	}
	f.become(t, ids["each"], jobstate.Completed)
	f.sweep(t)
	if got := f.batch(t, flow); got.Status != batchstore.Completed || got.Counts.Total() != total {
		t.Errorf("the flow is %s with %v", got.Status, got.Counts)
	}
}

func TestWhatCannotRunAgainIsRefused(t *testing.T) {
	t.Parallel()
	f := open(t)
	flow, ids := f.flow(t, shop...)
	refuse := func(name string, asked apibody.FlowRetry, want apierror.Code) {
		t.Helper()
		if _, err := f.again(t.Context(), flow, asked); codeOf(err) != want {
			t.Errorf("%s: it gets %v, want %s", name, err, want)
		}
	}
	refuse("while its jobs run", apibody.FlowRetry{All: true}, apierror.InvalidStateTransition)
	refuse("an unknown name", apibody.FlowRetry{From: []string{"charge", "nobody"}}, apierror.InvalidJobRequest)
	f.end(t, ids, refunded())
	command, err := f.Commands.KeepCommand(t.Context(), nil, apidb.Everyone, ids["mail"], jobevent.CommandRetry, "")
	if err != nil {
		t.Fatal(err)
	}
	refuse("while the retry of a job is not answered", apibody.FlowRetry{All: true}, apierror.InvalidStateTransition)
	f.Apply(t, apidbtest.Status(ids["mail"], command.Version+1, jobstate.Cancelled, func(s *jobevent.Status) {
		s.LastCommand = &jobevent.CommandResult{Number: command.Number, Command: command.Command, Applied: false}
	}))
	f.forget(t, ids["mail"])
	refuse("with a deleted job", apibody.FlowRetry{All: true}, apierror.InvalidStateTransition)
	if _, err := f.again(t.Context(), flow, apibody.FlowRetry{From: []string{"refund"}}); err != nil {
		t.Errorf("without the deleted job: %v", err)
	}
}

func TestOfConcurrentRetriesOfAFlowOneIsAccepted(t *testing.T) {
	t.Parallel()
	f := open(t)
	flow, ids := f.flow(t, shop...)
	f.end(t, ids, refunded())
	results := make([]error, 6)
	var all sync.WaitGroup
	for i := range results {
		all.Go(func() { _, results[i] = f.again(t.Context(), flow, apibody.FlowRetry{All: true}) })
	}
	all.Wait()
	accepted := 0
	for _, err := range results {
		if err == nil {
			accepted++
		} else if codeOf(err) != apierror.InvalidStateTransition {
			t.Errorf("it gets %v", err)
		}
	}
	if got := f.batch(t, flow); accepted != 1 || got.Run != 2 || got.Counts.Total() != 4 {
		t.Errorf("%d are accepted, it is run %d with %v", accepted, got.Run, got.Counts)
	}
	if _, err := f.Batches.Cancel(t.Context(), nil, apidb.Everyone, flow, ""); err != nil {
		t.Fatal(err)
	}
	f.operate(t)
	f.sweep(t)
	if got := f.batch(t, flow); got.Status != batchstore.Cancelled || got.Counts[jobstate.Cancelled] != 4 {
		t.Errorf("a cancel makes it %s with %v", got.Status, got.Counts)
	}
}
