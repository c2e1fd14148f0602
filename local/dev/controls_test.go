package dev_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/local/dev"
	"github.com/jobweaver/jobweaver/shared/client"
)

type control struct {
	Paused, Applied bool
}

// change repeats a request until the scheduler has applied the change: the gateway waits for that only a few seconds.
// A change states the whole control, so repeating it changes nothing.
func change(ctx context.Context, c *client.Client, method, path, body string) (now control, err error) {
	for deadline := time.Now().Add(30 * time.Second); ; {
		_, err = c.Do(ctx, method, "/api/controls/"+path, "application/json", []byte(body), &now)
		if err != nil || now.Applied {
			return now, err
		}
		if time.Now().After(deadline) {
			return now, fmt.Errorf("%s %s is not applied", method, path)
		}
	}
}

// While a queue is paused, no job that was submitted after the answer starts. After the pause all of them run, under
// the limits that were set meanwhile, and the statistics count them all.
func TestAPausedQueueStartsNothingUntilItIsResumed(t *testing.T) {
	t.Parallel()
	const jobs = 1000
	err := dev.Run(t.Context(), options(t, newFolder(t)), func(ctx context.Context, at string) error {
		c := client.New(at, "")
		if _, err := change(ctx, c, http.MethodPost, "queue/default/pause", ""); err != nil {
			return err
		}
		job := `{"jobType": "SIMULATION", "payload": {"steps": [{"type": "LOG", "message": "hi"}]}}`
		if err := submitMany(ctx, c, jobs, job); err != nil {
			return err
		}
		last, err := c.SubmitJSON(ctx, []byte(job))
		if err != nil {
			return err
		}
		got, err := c.Get(ctx, last.JobID, 2*time.Second)
		if err != nil {
			return err
		}
		if got.Status != "PENDING" || got.Attempt != 0 {
			t.Errorf("while its queue is paused it is %+v", got)
		}
		waiting, err := count(ctx, c, "PENDING")
		if err != nil {
			return err
		}
		if waiting != jobs+1 {
			t.Errorf("%d jobs wait", waiting)
		}
		if _, err := change(ctx, c, http.MethodPut, "type/SIMULATION", `{"maxRunning": 5}`); err != nil {
			return err
		}
		if _, err := change(ctx, c, http.MethodPost, "queue/default/resume", ""); err != nil {
			return err
		}
		if _, err := change(ctx, c, http.MethodDelete, "type/SIMULATION", ""); err != nil {
			return err
		}
		var stats struct{ Jobs map[string]int }
		for stats.Jobs["COMPLETED"] < jobs+1 {
			if _, err := c.Do(ctx, http.MethodGet, "/api/stats", "", nil, &stats); err != nil {
				return err
			}
			if _, err := c.Get(ctx, last.JobID, 50*time.Millisecond); err != nil {
				return err
			}
		}
		completed, err := count(ctx, c, "COMPLETED")
		if err == nil && completed != jobs+1 {
			t.Errorf("%d jobs are COMPLETED", completed)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
