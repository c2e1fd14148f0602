package dev_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/local/dev"
	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/client/worker"
)

type shopOrder struct {
	ID    string   `json:"id"`
	Items []string `json:"items"`
}

type shopSale struct {
	Cents int   `json:"cents"`
	Boxes []int `json:"boxes"`
}

var (
	sellTask = client.Task[shopOrder, shopSale]{Type: "shop.sell"}
	packTask = client.Task[string, int]{Type: "shop.pack"}
)

// A handler waits for a payment, which may come before it asks, and calls a job for each item. It never runs while it
// waits, and each call makes one job.
func TestHandlersWaitForEventsAndCallJobs(t *testing.T) {
	t.Parallel()
	o := options(t, newFolder(t))
	o.Queues = []string{"default", "pull"}
	err := dev.Run(t.Context(), o, func(ctx context.Context, url string) error {
		c := client.New(url, "")
		var packed, cancelled atomic.Int64
		held := make(chan struct{})
		w := worker.New(c, worker.Options{Slots: 20})
		worker.HandleTask(w, &sellTask, func(ctx context.Context, a *worker.Attempt, in shopOrder) (out shopSale, err error) {
			paid, err := worker.Receive(ctx, a, "paid", worker.EventWait{
				Type: "com.shop.paid", Match: map[string]any{"order": in.ID}, Timeout: time.Hour,
			})
			if err != nil {
				return out, err
			}
			if err := paid.DecodeData(&out); err != nil {
				return out, err
			}
			out.Boxes, err = worker.CallAll(ctx, a, "pack", &packTask, in.Items, func(r *client.JobRequest) { r.MaxRetryCount = new(int) })
			return out, err
		})
		worker.HandleTask(w, &packTask, func(ctx context.Context, _ *worker.Attempt, item string) (int, error) {
			switch item {
			case "broken":
				return 0, errors.New("it is broken")
			case "endless":
				close(held)
				<-ctx.Done()
				cancelled.Add(1)
				return 0, context.Cause(ctx)
			}
			return int(packed.Add(1)), nil
		})
		running, stop := context.WithCancel(ctx)
		defer stop()
		done := make(chan error, 1)
		go func() { done <- w.Run(running) }()
		select {
		case <-w.Ready():
		case err := <-done:
			return err
		}
		pay := func(order string) {
			data, _ := json.Marshal(map[string]any{"order": order, "cents": 900})
			for range 2 { // the second changes nothing
				if _, err := c.SendEvent(ctx, client.CloudEvent{ID: order, Source: "/shop", Type: "com.shop.paid", Data: data}); err != nil {
					t.Error(err)
				}
			}
		}
		pay("before")
		for _, order := range []string{"before", "after"} {
			job, err := sellTask.Submit(ctx, c, shopOrder{order, []string{"a", "b"}})
			if err != nil {
				return err
			}
			if order == "after" {
				untilWaits(ctx, t, c, job.JobID)
				pay(order)
			}
			out, err := sellTask.Wait(ctx, c, job.JobID)
			slices.Sort(out.Boxes)
			if err != nil || out.Cents != 900 || len(out.Boxes) != 2 || out.Boxes[1] != out.Boxes[0]+1 {
				t.Errorf("%s: %+v, %v", order, out, err)
			}
		}
		if n := packed.Load(); n != 4 {
			t.Errorf("%d boxes are packed", n)
		}
		pay("broken")
		_, err := sellTask.Run(ctx, c, shopOrder{"broken", []string{"a", "broken"}})
		var ended *client.EndedError
		if !errors.As(err, &ended) || ended.Job.LastError.ErrorCode != "WORKER.CHILD_FAILED" || ended.Job.Attempt != 2 {
			t.Errorf("%v", err)
		}
		pay("endless")
		job, err := sellTask.Submit(ctx, c, shopOrder{"endless", []string{"endless"}})
		if err != nil {
			return err
		}
		<-held
		untilWaits(ctx, t, c, job.JobID)
		if err := c.Cancel(ctx, job.JobID); err != nil {
			return err
		}
		if ended, err := c.Wait(ctx, job.JobID); err != nil || ended.Status != client.Cancelled {
			t.Errorf("%+v, %v", ended, err)
		}
		shown, err := c.Get(ctx, job.JobID, 0)
		if err != nil || len(shown.Waits) != 2 || shown.Waits[1].Job == nil {
			return fmt.Errorf("%+v, %w", shown, err)
		}
		if child, err := c.Wait(ctx, shown.Waits[1].Job.JobID); err != nil || child.Status != client.Cancelled || child.ParentID != job.JobID || cancelled.Load() != 1 {
			t.Errorf("%+v, %v", child, err)
		}
		stop()
		return <-done
	})
	if err != nil {
		t.Fatal(err)
	}
}

// untilWaits waits until a job has ended its attempt, and waits without a slot.
func untilWaits(ctx context.Context, t *testing.T, c *client.Client, id string) {
	t.Helper()
	every := time.NewTicker(20 * time.Millisecond)
	defer every.Stop()
	for {
		job, err := c.Get(ctx, id, 0)
		if err != nil {
			t.Fatal(err)
		}
		if job.Status == "SCHEDULED" && job.Attempt > 0 {
			return
		}
		<-every.C
	}
}
