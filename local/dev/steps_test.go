package dev_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/local/dev"
	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/client/durable"
	"github.com/jobweaver/jobweaver/shared/client/worker"
)

// The results of a job's steps are larger than a checkpoint, and than a page of them. Each step runs once, although one
// attempt ends in a sleep and another fails.
func TestAJobContinuesBehindTheStepsOfItsEarlierAttempts(t *testing.T) {
	t.Parallel()
	o := options(t, newFolder(t))
	o.Queues = []string{"default", "pull"}
	const parts = 6
	const large = 240 << 10
	err := dev.Run(t.Context(), o, func(ctx context.Context, url string) error {
		c := client.New(url, "")
		task := client.Task[int, int]{Type: "shop.print"}
		var ran atomic.Int64
		w := worker.New(c, worker.Options{})
		worker.HandleTask(w, &task, func(ctx context.Context, a *worker.Attempt, _ int) (sum int, err error) {
			for i := range parts {
				text, err := durable.Step(ctx, a.Checkpoint, fmt.Sprint("part ", i), func(context.Context) (string, error) {
					ran.Add(1)
					return strings.Repeat("<", large), nil
				})
				if err != nil {
					return 0, err
				}
				sum += len(text)
			}
			if err := durable.Sleep(ctx, a.Checkpoint, "dry", 200*time.Millisecond); err != nil {
				return 0, err
			}
			if a.Attempt == 2 {
				return 0, &worker.Failure{Code: "SHOP.JAM", Retryable: true}
			}
			return sum, nil
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
		accepted, err := task.Submit(ctx, c, 0, func(r *client.JobRequest) {
			r.RetryPolicy = client.RetryFixed(10 * time.Millisecond)
		})
		if err != nil {
			return err
		}
		sum, err := task.Wait(ctx, c, accepted.JobID)
		if err != nil || sum != parts*large || ran.Load() != parts {
			t.Errorf("%d, %v after %d steps", sum, err, ran.Load())
		}
		job, err := c.Get(ctx, accepted.JobID, 0)
		if err != nil {
			return err
		}
		if len(job.Steps) != parts+1 || job.Attempt != 3 || job.Steps[0].Name != "part 0" || job.Steps[0].Bytes != large+2 ||
			job.Steps[parts].Name != "dry" || job.Steps[parts].Until.IsZero() || job.Steps[parts].Attempt != 1 {
			t.Errorf("attempt %d, %.2000v", job.Attempt, job.Steps)
		}
		stop()
		return <-done
	})
	if err != nil {
		t.Fatal(err)
	}
}
