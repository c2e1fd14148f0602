package dev_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/local/dev"
	"github.com/jobweaver/jobweaver/shared/client"
)

type operation struct {
	OperationID string
	Status      string
	FinishedAt  *time.Time
	Progress    struct {
		Matched, Asked, Applied, Refused, Skipped int
		Walked                                    bool
	}
	Reasons json.RawMessage
}

// operate starts an operation and, if wait is set, waits for its end.
func operate(ctx context.Context, c *client.Client, body string, wait bool) (op operation, err error) {
	_, err = c.Do(ctx, http.MethodPost, "/api/operations", "application/json", []byte(body), &op)
	for err == nil && wait && op.FinishedAt == nil {
		_, err = c.Do(ctx, http.MethodGet, "/api/operations/"+op.OperationID+"?wait=30s", "", nil, &op)
	}
	return op, err
}

func submitMany(ctx context.Context, c *client.Client, n int, job string) error {
	body := []byte(`{"jobs": [` + strings.Repeat(job+",", 999) + job + `]}`)
	for range n / 1000 {
		if _, err := c.Do(ctx, http.MethodPost, "/api/jobs/batch", "application/json", body, nil); err != nil {
			return err
		}
	}
	return nil
}

// count pages through all jobs of a state.
func count(ctx context.Context, c *client.Client, status string) (n int, err error) {
	for _, err := range c.List(ctx, client.Filter{Status: []string{status}}) {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// While workers run them, thousands of jobs are cancelled by a filter; the operation is aborted half-way; the
// installation is restarted; the other jobs are cancelled, and all are deleted. Each job is CANCELLED or COMPLETED
// before the deletion and gone after it, and every operation has counted its jobs.
func TestThousandsOfJobsAreCancelledWhileTheyRunAndThenDeleted(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("the race detector sees nothing in thousands that it does not see in one, and needs minutes for them")
	}
	const jobs = 8_000
	dir := newFolder(t)
	err := dev.Run(t.Context(), options(t, dir), func(ctx context.Context, at string) error {
		c := client.New(at, "")
		if err := reschedule(ctx, t, c); err != nil {
			return err
		}
		work := `{"jobType": "SIMULATION", "payload": {"steps": [{"type": "SLEEP", "durationMs": 30}]}}`
		if err := submitMany(ctx, c, jobs, work); err != nil {
			return err
		}
		op, err := operate(ctx, c, `{"command": "cancel", "filter": {"type": "SIMULATION"}}`, false)
		if err != nil {
			return err
		}
		for op.Progress.Applied == 0 && op.FinishedAt == nil && err == nil {
			_, err = c.Do(ctx, http.MethodGet, "/api/operations/"+op.OperationID+"?wait=20ms", "", nil, &op)
		}
		if err != nil {
			return err
		}
		_, err = c.Do(ctx, http.MethodPost, "/api/operations/"+op.OperationID+"/abort", "", nil, &op)
		if err != nil {
			return err
		}
		for op.FinishedAt == nil && err == nil {
			_, err = c.Do(ctx, http.MethodGet, "/api/operations/"+op.OperationID+"?wait=30s", "", nil, &op)
		}
		if p := op.Progress; op.Status != "ABORTED" || p.Walked || p.Asked != p.Applied+p.Refused || p.Matched != p.Asked+p.Skipped {
			t.Errorf("aborted: %+v", op)
		}
		if err == nil {
			// It is under way when the installation stops.
			_, err = operate(ctx, c, `{"command": "cancel", "filter": {"all": true}, "idempotencyKey": "rest"}`, false)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	err = dev.Run(t.Context(), options(t, dir), func(ctx context.Context, at string) error {
		c := client.New(at, "")
		op, err := operate(ctx, c, `{"command": "cancel", "filter": {"all": true}, "idempotencyKey": "rest"}`, true)
		if err != nil {
			return err
		}
		if p := op.Progress; op.Status != "COMPLETED" || !p.Walked || p.Asked != p.Applied+p.Refused {
			t.Errorf("cancelled the rest: %+v", op)
		}
		return deleteAll(ctx, t, c, jobs+1)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// reschedule makes a job that waits for an hour run now, by an instant in the past.
func reschedule(ctx context.Context, t *testing.T, c *client.Client) error {
	t.Helper()
	job, err := c.SubmitJSON(ctx, []byte(`{"jobType": "SIMULATION", "payload": {"steps": [{"type": "LOG", "message": "hi"}]}, "delayMs": 3600000}`))
	if err != nil {
		return err
	}
	_, err = c.Do(ctx, http.MethodPost, "/api/jobs/"+job.JobID+"/reschedule", "application/json", []byte(`{"runAt": "2020-01-01T00:00:00Z"}`), nil)
	if err != nil {
		return err
	}
	ended, err := c.Get(ctx, job.JobID, time.Minute)
	if err == nil && ended.Status != "COMPLETED" {
		t.Errorf("the job is %s", ended.Status)
	}
	return err
}

func deleteAll(ctx context.Context, t *testing.T, c *client.Client, jobs int) error {
	t.Helper()
	for _, status := range []string{"SCHEDULED", "PENDING", "QUEUED", "RUNNING", "RETRYING"} {
		for n := 1; n > 0; { // a few are just ending
			var err error
			if n, err = count(ctx, c, status); err != nil {
				return err
			}
		}
	}
	completed, err := count(ctx, c, "COMPLETED")
	if err != nil {
		return err
	}
	cancelled, err := count(ctx, c, "CANCELLED")
	if err != nil {
		return err
	}
	if completed+cancelled != jobs || cancelled == 0 {
		t.Errorf("%d jobs are COMPLETED and %d CANCELLED", completed, cancelled)
	}
	op, err := operate(ctx, c, `{"command": "delete", "filter": {"status": ["COMPLETED", "CANCELLED"]}}`, true)
	if err != nil {
		return err
	}
	if p := op.Progress; op.Status != "COMPLETED" || p.Applied != jobs {
		t.Errorf("deleted: %+v", op)
	}
	left, err := c.ListPage(ctx, client.Filter{}, 0, "")
	if err == nil && len(left.Jobs) > 0 {
		t.Errorf("%d jobs are left", len(left.Jobs))
	}
	return err
}
