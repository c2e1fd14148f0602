package workertest_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/client/durable"
	"github.com/jobweaver/jobweaver/shared/client/jobtest"
	"github.com/jobweaver/jobweaver/shared/client/worker"
	"github.com/jobweaver/jobweaver/shared/client/worker/workertest"
)

type order struct {
	ID    string   `json:"id"`
	Items []string `json:"items"`
}

type sold struct {
	Cents int   `json:"cents"`
	Boxes []int `json:"boxes"`
}

var pack = client.Task[string, int]{Type: "shop.pack"}

// sell waits for a payment, and has the items packed.
func sell(ctx context.Context, a *worker.Attempt, in order) (out sold, err error) {
	paid, err := worker.Receive(ctx, a, "paid", worker.EventWait{
		Type: "shop.paid", Match: map[string]any{"order.id": in.ID}, Timeout: 24 * time.Hour,
	})
	if err != nil || paid == nil {
		return out, err
	}
	if err := paid.DecodeData(&out); err != nil {
		return out, err
	}
	out.Boxes, err = worker.CallAll(ctx, a, "pack", &pack, in.Items)
	return out, err
}

func newSeller() *worker.Worker {
	w := worker.New(client.New("http://none", ""), worker.Options{})
	worker.Handle(w, "shop.sell", sell)
	return w
}

func TestAHandlerSleepsUntilItsEventComes(t *testing.T) {
	t.Parallel()
	w := newSeller()
	in := order{"17", []string{"a", "b"}}
	var job jobtest.Job
	if ran := workertest.Run(t.Context(), &job, w, "shop.sell", in); ran.Err != nil || ran.Snooze < 23*time.Hour {
		t.Fatalf("%+v", ran)
	}
	job.Events = []client.CloudEvent{
		{Type: "shop.paid", Data: json.RawMessage(`{"order": {"id": "18"}, "cents": 1}`)},
		{Type: "shop.paid", Data: json.RawMessage(`{"order": {"id": "17"}, "cents": 900}`)},
	}
	var called []any
	job.Called = func(request client.JobRequest) (any, bool, error) {
		called = append(called, request.Payload)
		return len(called), true, nil
	}
	for range 2 { // nothing is called again
		ran := workertest.Run(t.Context(), &job, w, "shop.sell", in)
		var out sold
		if err := json.Unmarshal(ran.Output, &out); err != nil || out.Cents != 900 || !slices.Equal(out.Boxes, []int{1, 2}) {
			t.Errorf("%+v, %v", ran, err)
		}
	}
	if !slices.Equal(called, []any{"a", "b"}) {
		t.Errorf("called with %v", called)
	}
}

func TestAWaitThatNothingEndsIsOverAfterItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newSeller()
		var job jobtest.Job
		ran := workertest.Run(t.Context(), &job, w, "shop.sell", order{ID: "17"})
		<-time.After(ran.Snooze)
		if ran = workertest.Run(t.Context(), &job, w, "shop.sell", order{ID: "17"}); ran.Err != nil || ran.Snooze != 0 {
			t.Errorf("%+v", ran)
		}
	})
}

func TestACallWhoseJobFailsIsAnError(t *testing.T) {
	t.Parallel()
	w := worker.New(client.New("http://none", ""), worker.Options{})
	worker.Handle(w, "shop.call", func(ctx context.Context, a *worker.Attempt, _ any) (int, error) {
		if _, err := durable.Step(ctx, a.Checkpoint, "step", func(context.Context) (int, error) { return 1, nil }); err != nil {
			return 0, err
		}
		return worker.Call(ctx, a, "first", &pack, "a")
	})
	var job jobtest.Job
	if ran := workertest.Run(t.Context(), &job, w, "shop.call", nil); ran.Err != nil || ran.Snooze != 30*24*time.Hour {
		t.Errorf("%+v", ran)
	}
	job.Called = func(client.JobRequest) (any, bool, error) { return nil, true, errors.New("no box") }
	ran := workertest.Run(t.Context(), &job, w, "shop.call", nil)
	var failed *worker.CallError
	if !errors.As(ran.Err, &failed) || failed.Name != "first" || !strings.HasSuffix(failed.Error(), "is FAILED: TEST.FAILED: no box") {
		t.Errorf("%+v", ran)
	}
}

func TestAnEventIsGivenOnceAndANameIsUsedOnce(t *testing.T) {
	t.Parallel()
	w := worker.New(client.New("http://none", ""), worker.Options{})
	worker.Handle(w, "shop.twice", func(ctx context.Context, a *worker.Attempt, names []string) (got []bool, err error) {
		for _, name := range names {
			event, err := worker.Receive(ctx, a, name, worker.EventWait{Type: "shop.paid"})
			if err != nil {
				return nil, err
			}
			got = append(got, event != nil)
		}
		return got, nil
	})
	job := jobtest.Job{Events: []client.CloudEvent{{Type: "shop.paid"}}}
	if ran := workertest.Run(t.Context(), &job, w, "shop.twice", []string{"one", "two"}); ran.Snooze == 0 {
		t.Errorf("the second wait got the same event: %+v", ran)
	}
	var wrong *durable.Failure
	ran := workertest.Run(t.Context(), &jobtest.Job{Events: job.Events}, w, "shop.twice", []string{"one", "one"})
	if !errors.As(ran.Err, &wrong) || wrong.Code != durable.StepRepeated {
		t.Errorf("%+v", ran)
	}
}
