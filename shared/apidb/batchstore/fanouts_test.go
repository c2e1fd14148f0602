package batchstore_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/apidb/batchstore"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

var elementRules = batchstore.ElementRules{Rules: rules, Check: func(*jobspec.Request) error { return nil }}

// fanOut makes a flow with a fan-out over the output of a job, which has completed with it.
func (f fixture) fanOut(t testing.TB, output string) (flow, fanOut uuid.UUID) {
	t.Helper()
	asked := batchstore.NewBatch{ID: f.NewID(), Request: apibody.Batch{Closed: true}}
	list, each := f.jobOf(asked.ID, ""), f.jobOf(asked.ID, "")
	each.Request.After, each.Request.ForEach = []uuid.UUID{list.JobID}, &jobspec.ForEach{Name: "list", JobID: list.JobID, Path: "$"}
	each.Request.JobType, each.Request.Payload = "OWN", json.RawMessage(`{"$item": "value"}`)
	asked.Jobs = append(asked.Jobs, list, each)
	asked.Graph = []apibody.FlowJob{{Name: "list", JobID: list.JobID}, {
		Name: "each", JobID: each.JobID, After: []apibody.FlowEdge{{Name: "list", JobID: list.JobID, On: jobstate.WhenCompleted}},
	}}
	if _, err := f.Batches.Create(t.Context(), nil, asked); err != nil {
		t.Fatal(err)
	}
	f.Apply(t, apidbtest.Status(list.JobID, 1, jobstate.Completed, func(s *jobevent.Status) { s.Output = json.RawMessage(output) }))
	return asked.ID, each.JobID
}

// due returns the state of a fan-out that has not ended; nil: it has.
func (f fixture) due(t testing.TB, id uuid.UUID) *batchstore.FanOut {
	t.Helper()
	found, err := f.Batches.FanOuts(t.Context(), uuid.Nil, 100)
	if err != nil {
		t.Fatal(err)
	}
	for i := range found {
		if found[i].ID == id {
			return &found[i]
		}
	}
	return nil
}

func (f fixture) elements(t testing.TB, id uuid.UUID) int {
	t.Helper()
	return apidbtest.One[int](t, f, "select count(distinct element) from jobs where fan_out_id = $1", id)
}

// Whichever gateways expand a fan-out, and however often, each element gets one job, and one gateway publishes it.
func TestAnElementGetsOneJob(t *testing.T) {
	t.Parallel()
	f := open(t)
	flow, id := f.fanOut(t, "["+strings.Repeat("1,", 299)+"1]")
	if due := f.due(t, id); due == nil || !due.Due || due.Expanded {
		t.Fatalf("before it is %+v", due)
	}
	var created atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 3 {
				jobs, err := f.Batches.Expand(t.Context(), elementRules, id)
				if created.Add(int64(len(jobs))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if n := f.elements(t, id); n != 300 || created.Load() != 300 || f.batch(t, flow).Counts.Total() != 302 {
		t.Errorf("%d elements have a job, %d are published, and the flow counts %d", n, created.Load(), f.batch(t, flow).Counts.Total())
	}
	if due := f.due(t, id); due == nil || due.Due || !due.Expanded {
		t.Errorf("after it is %+v", due)
	}
}

// A fan-out that is cancelled or whose flow has ended gets no jobs.
func TestAnEndedFanOutGetsNoJobs(t *testing.T) {
	t.Parallel()
	f := open(t)
	flow, id := f.fanOut(t, "[1, 2]")
	f.become(t, id, jobstate.Cancelled)
	f.sweep(t)
	if got := f.batch(t, flow); !got.Finished() || got.Status != batchstore.Cancelled {
		t.Fatalf("the flow is %s", got.Status)
	}
	if jobs, err := f.Batches.Expand(t.Context(), elementRules, id); err != nil || len(jobs) > 0 || f.elements(t, id) > 0 || f.due(t, id) != nil {
		t.Errorf("%d jobs are made, %v", len(jobs), err)
	}
	flow, id = f.fanOut(t, "[1, 2]")
	if _, err := f.Batches.Cancel(t.Context(), nil, apidb.Everyone, flow, "test"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := f.Operations.Operate(t.Context(), f.unfinished(t)[0]); err != nil { // the scheduler has not answered yet
		t.Fatal(err)
	}
	if jobs, err := f.Batches.Expand(t.Context(), elementRules, id); err != nil || len(jobs) > 0 || f.due(t, id).Due {
		t.Errorf("%d jobs are made while a cancel is under way, %v", len(jobs), err)
	}
}

// The scheduler does not look again at what a job that is retried by hand comes after, so nothing else would end it.
func TestARetriedFanOutThatCanHaveNoElementsFails(t *testing.T) {
	t.Parallel()
	f := open(t)
	for name, c := range map[string]struct {
		flowEnds bool
		why      string
	}{
		"its source was cancelled": {false, "the output of list"},
		"its flow has ended":       {true, "its flow has ended: retry the flow"},
	} {
		asked := batchstore.NewBatch{ID: f.NewID(), Request: apibody.Batch{Closed: true}}
		list, each, other := f.jobOf(asked.ID, ""), f.jobOf(asked.ID, ""), f.jobOf(asked.ID, "")
		each.Request.After, each.Request.ForEach = []uuid.UUID{list.JobID}, &jobspec.ForEach{Name: "list", JobID: list.JobID, Path: "$"}
		asked.Jobs = append(asked.Jobs, list, each, other)
		asked.Graph = []apibody.FlowJob{{Name: "list", JobID: list.JobID}, {Name: "other", JobID: other.JobID}, {
			Name: "each", JobID: each.JobID, After: []apibody.FlowEdge{{Name: "list", JobID: list.JobID, On: jobstate.WhenCompleted}},
		}}
		if _, err := f.Batches.Create(t.Context(), nil, asked); err != nil {
			t.Fatal(err)
		}
		f.become(t, list.JobID, jobstate.Cancelled)
		f.become(t, each.JobID, jobstate.Cancelled)
		if c.flowEnds {
			f.become(t, other.JobID, jobstate.Completed)
			f.sweep(t)
		}
		f.Apply(t, apidbtest.Status(each.JobID, 3, jobstate.Waiting, func(s *jobevent.Status) { s.Attempt = 2 }))
		refused := (*batchstore.RefusedFanOut)(nil)
		jobs, err := f.Batches.Expand(t.Context(), elementRules, each.JobID)
		if !errors.As(err, &refused) || refused.Attempt != 2 || !strings.Contains(refused.Why, c.why) || len(jobs) > 0 {
			t.Errorf("%s: %d jobs, %v", name, len(jobs), err)
		}
	}
}

func (f fixture) unfinished(t testing.TB) []uuid.UUID {
	t.Helper()
	ids, err := f.Operations.UnfinishedOperations(t.Context(), uuid.Nil, 100)
	if err != nil || len(ids) == 0 {
		t.Fatal(ids, err)
	}
	return ids
}

// A flow ends only after the jobs of its elements, and is CANCELLED if one of these is.
func TestAFlowWaitsForItsElements(t *testing.T) {
	t.Parallel()
	f := open(t)
	for _, last := range []jobstate.Status{jobstate.Completed, jobstate.Cancelled} {
		flow, id := f.fanOut(t, "[1, 2]")
		jobs, err := f.Batches.Expand(t.Context(), elementRules, id)
		if err != nil || len(jobs) != 2 {
			t.Fatal(jobs, err)
		}
		f.become(t, jobs[0].JobID, jobstate.Completed)
		f.become(t, id, jobstate.Completed) // as if it did not wait
		f.sweep(t)
		if got := f.batch(t, flow); got.Finished() {
			t.Fatal("it has ended before the job of an element")
		}
		f.become(t, jobs[1].JobID, last)
		f.sweep(t)
		if got := f.batch(t, flow); string(got.Status) != string(last) {
			t.Errorf("it has ended as %s", got.Status)
		}
	}
}

func TestTheOutputsOfElementsAreInTheirOrder(t *testing.T) {
	t.Parallel()
	f := open(t)
	_, id := f.fanOut(t, "["+strings.Repeat("1,", 1200)+"1]")
	jobs, err := f.Batches.Expand(t.Context(), elementRules, id)
	if err != nil {
		t.Fatal(err)
	}
	want := make([]string, len(jobs))
	for i, job := range jobs {
		want[i] = "null"
		f.Apply(t, apidbtest.Status(job.JobID, 1, jobstate.Completed, func(s *jobevent.Status) {
			if i%3 > 0 {
				want[i] = fmt.Sprint(i)
				s.Output = json.RawMessage(want[i])
			}
		}))
	}
	f.Exec(t, "delete from jobs where fan_out_id = $1 and element in (1, 700, 1200)", id)
	want[1], want[700], want[1200] = "null", "null", "null"
	end, err := f.Batches.End(t.Context(), nil, id)
	if err != nil || end == nil || string(end.Output) != "["+strings.Join(want, ",")+"]" {
		t.Errorf("it ends with %+v, %v", end, err)
	}
	for _, job := range jobs {
		f.Apply(t, apidbtest.Status(job.JobID, 2, jobstate.Completed, func(s *jobevent.Status) {
			s.Output = json.RawMessage(`"` + strings.Repeat("x", 500) + `"`)
		}))
	}
	if end, err = f.Batches.End(t.Context(), nil, id); err != nil || !strings.HasPrefix(string(end.Output), `{"$tooLarge":`) {
		t.Errorf("it ends with %.100s, %v", end.Output, err)
	}
}

// The outputs of a fan-out are read until they are known to be too large, and not a page of 500 of them.
func TestOutputsThatAreTooLargeAreNotAllRead(t *testing.T) {
	t.Parallel()
	f := open(t)
	_, id := f.fanOut(t, "["+strings.Repeat("1,", 29)+"1]")
	jobs, err := f.Batches.Expand(t.Context(), elementRules, id)
	if err != nil {
		t.Fatal(err)
	}
	for _, job := range jobs {
		f.Apply(t, apidbtest.Status(job.JobID, 1, jobstate.Completed, func(s *jobevent.Status) {
			s.Output = json.RawMessage(`"` + strings.Repeat("x", 250_000) + `"`)
		}))
	}
	var read int64
	ctx := apidb.WithMeter(t.Context(), func(bytes int64) error {
		read += bytes
		return nil
	})
	end, err := f.Batches.End(ctx, nil, id)
	if err != nil || !strings.HasPrefix(string(end.Output), `{"$tooLarge":`) || read > 2*jobevent.MaxParentBytes {
		t.Errorf("it ends with %+v, %v, after %d bytes", end, err, read)
	}
}

// It measures how long the transaction that inserts 10,000 jobs takes.
func TestTenThousandElementsGetJobsQuickly(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("the race detector makes it slow")
	}
	f := open(t)
	_, id := f.fanOut(t, "["+strings.Repeat("1,", 9_999)+"1]")
	from := time.Now()
	jobs, err := f.Batches.Expand(t.Context(), elementRules, id)
	t.Logf("%d jobs in %s", len(jobs), time.Since(from))
	if err != nil || len(jobs) != 10_000 || f.elements(t, id) != 10_000 {
		t.Errorf("%d jobs, %v", len(jobs), err)
	}
}
