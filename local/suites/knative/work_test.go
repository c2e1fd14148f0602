package knative

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/retry"
)

// calling returns the body of a job that calls outside; more is added to it.
func (h *fixture) calling(o *outside, fails int, data any, more map[string]any) []byte {
	job := map[string]any{
		"jobType": "FUNCTION", "callbackUrl": o.url + "/ended", "maxRetryCount": 3,
		"retryPolicy": map[string]any{"type": "fixed", "delayMs": 200},
		"payload":     map[string]any{"url": fmt.Sprintf("%s/task/%d", o.url, fails), "data": data},
	}
	maps.Copy(job, more)
	body, err := json.Marshal(job)
	if err != nil {
		panic(err) // maps of text and numbers
	}
	return body
}

// ending submits a job and waits for its end.
func (h *fixture) ending(ctx context.Context, body []byte, status string, attempts int) (*client.Job, error) {
	accepted, err := h.api.SubmitJSON(ctx, body)
	if err != nil {
		return nil, err
	}
	return h.end(ctx, accepted.JobID, status, attempts)
}

func (h *fixture) end(ctx context.Context, id, status string, attempts int) (*client.Job, error) {
	for {
		job, err := h.api.Get(ctx, id, 20*time.Second)
		if err != nil {
			return nil, fmt.Errorf("await %s: %w", id, err)
		}
		if !job.Terminal() {
			continue
		}
		if job.Status != status || job.Attempt != attempts {
			return job, fmt.Errorf("%s is %s at attempt %d, not %s at %d", id, job.Status, job.Attempt, status, attempts)
		}
		return job, nil
	}
}

// manyJobs: each attempt runs once, whatever the broker does, and each end is delivered.
func manyJobs(ctx context.Context, h *fixture, o *outside) error {
	var jobs errgroup.Group
	for n := range 30 {
		jobs.Go(func() error {
			fails, status := n%5, "COMPLETED"
			if fails == 4 {
				status = "FAILED"
			}
			attempts := min(fails+1, 4)
			job, err := h.ending(ctx, h.calling(o, fails, map[string]any{"n": n}, nil), status, attempts)
			if err != nil {
				return err
			}
			return o.check(ctx, job.JobID, status, attempts)
		})
	}
	return jobs.Wait()
}

// largestJob: a job with half a MiB of data returns the largest output.
func largestJob(ctx context.Context, h *fixture, o *outside) error {
	half := strings.Repeat("a", 200<<10)
	job, err := h.ending(ctx, h.calling(o, 0, half, map[string]any{"tags": []string{"large"}}), "COMPLETED", 1)
	if err != nil {
		return err
	}
	if len(job.Output) < len(half) {
		return fmt.Errorf("its output has %d bytes", len(job.Output))
	}
	most := fmt.Appendf(nil, `{"jobType":"SIMULATION","payload":{"steps":[{"type":"LOG","message":%q}]}}`, "hi")
	pad := strings.Repeat(" ", 510<<10-len(most))
	most = slices.Concat(most[:len(most)-1], []byte(pad), most[len(most)-1:])
	_, err = h.ending(ctx, most, "COMPLETED", 1)
	return err
}

// ordered: jobs of one key run one after another.
func ordered(ctx context.Context, h *fixture, o *outside) error {
	var ids []string
	for n := range 5 {
		accepted, err := h.api.SubmitJSON(ctx, h.calling(o, 0, n, map[string]any{"orderingKey": "a"}))
		if err != nil {
			return err
		}
		ids = append(ids, accepted.JobID)
	}
	for _, id := range ids {
		if _, err := h.end(ctx, id, "COMPLETED", 1); err != nil {
			return err
		}
	}
	if turns := o.turns(ids); !slices.Equal(turns, ids) {
		return fmt.Errorf("jobs of one key ran as %v, not %v", turns, ids)
	}
	return nil
}

// chained: each job runs after its dependency.
func chained(ctx context.Context, h *fixture, o *outside) error {
	first, err := h.api.SubmitJSON(ctx, h.calling(o, 1, 0, nil))
	if err != nil {
		return err
	}
	after := map[string]any{"after": []string{first.JobID}}
	last, err := h.ending(ctx, h.calling(o, 0, 0, after), "COMPLETED", 1)
	if err != nil {
		return err
	}
	turns := o.turns([]string{first.JobID, last.JobID})
	if want := []string{first.JobID, first.JobID, last.JobID}; !slices.Equal(turns, want) {
		return fmt.Errorf("they ran as %v, not %v", turns, want)
	}
	return nil
}

// cancelled: a job runs, is cancelled, retried, cancelled again and deleted.
func cancelled(ctx context.Context, h *fixture, _ *outside) error {
	sleeps := []byte(`{"jobType": "SIMULATION", "payload": {"steps": [{"type": "SLEEP", "durationMs": 60000}]}}`)
	accepted, err := h.api.SubmitJSON(ctx, sleeps)
	if err != nil {
		return err
	}
	for attempt := 1; attempt <= 2; attempt++ {
		runs := func(job *client.Job) bool { return job.Status == "RUNNING" && job.Attempt == attempt }
		if err := h.see(ctx, accepted.JobID, runs); err != nil {
			return err
		}
		if _, err := h.api.Command(ctx, accepted.JobID, "cancel"); err != nil {
			return err
		}
		if _, err := h.end(ctx, accepted.JobID, "CANCELLED", attempt); err != nil {
			return err
		}
		if attempt == 1 {
			if _, err := h.api.Command(ctx, accepted.JobID, "retry"); err != nil {
				return err
			}
		}
	}
	if _, err := h.api.Do(ctx, http.MethodDelete, "/api/jobs/"+accepted.JobID, "", nil, nil); err != nil {
		return err
	}
	for {
		_, err := h.api.Get(ctx, accepted.JobID, 0)
		var refused *client.Error
		if errors.As(err, &refused) && refused.Status == http.StatusNotFound {
			return nil
		}
		if err != nil || !retry.Pause(ctx, 50*time.Millisecond) {
			return fmt.Errorf("await that it is deleted: %w", err)
		}
	}
}

// see reads a job until as returns true.
func (h *fixture) see(ctx context.Context, id string, as func(*client.Job) bool) error {
	for {
		job, err := h.api.Get(ctx, id, 0)
		if err != nil {
			return err
		}
		if as(job) {
			return nil
		}
		if !retry.Pause(ctx, 50*time.Millisecond) {
			return fmt.Errorf("%s stays %s at attempt %d", id, job.Status, job.Attempt)
		}
	}
}

// controlled: a pause of a type and its end both reach the scheduler.
func controlled(ctx context.Context, h *fixture, _ *outside) error {
	for _, verb := range []string{"pause", "resume"} {
		var now struct{ Applied bool }
		_, err := h.api.Do(ctx, http.MethodPost, "/api/controls/type/PAUSED/"+verb, "", nil, &now)
		for err == nil && !now.Applied && retry.Pause(ctx, 50*time.Millisecond) { // a stopping gateway answers before the change is applied
			_, err = h.api.Do(ctx, http.MethodGet, "/api/controls/type/PAUSED", "", nil, &now)
		}
		if err != nil || !now.Applied {
			return fmt.Errorf("%s is not applied: %w", verb, err)
		}
	}
	return nil
}

// scheduled: a schedule makes a job each second.
func scheduled(ctx context.Context, h *fixture, o *outside) error {
	var job map[string]any
	if err := json.Unmarshal(h.calling(o, 0, 0, map[string]any{"tags": []string{"tick"}}), &job); err != nil {
		return err
	}
	body, err := json.Marshal(map[string]any{"name": "each-second", "cron": "* * * * * *", "job": job})
	if err != nil {
		return err
	}
	if _, err := h.api.Do(ctx, http.MethodPost, "/api/schedules", "application/json", body, nil); err != nil {
		return err
	}
	for {
		page, err := h.api.ListPage(ctx, client.Filter{Tag: "tick", Status: []string{"COMPLETED"}}, 0, "")
		jobs := page.Jobs
		if err != nil {
			return err
		}
		if len(jobs) >= 2 {
			_, err := h.api.Do(ctx, http.MethodDelete, "/api/schedules/each-second", "", nil, nil)
			return errors.Join(err, o.check(ctx, jobs[0].JobID, "COMPLETED", 1))
		}
		if !retry.Pause(ctx, 100*time.Millisecond) {
			return errors.New("the schedule made no two jobs")
		}
	}
}

// operated: an operation cancels jobs.
func operated(ctx context.Context, h *fixture, _ *outside) error {
	later := `{"jobType": "SIMULATION", "delayMs": 600000, "tags": ["later"], "payload": {"steps": [{"type": "LOG", "message": "no"}]}}`
	for range 10 {
		accepted, err := h.api.SubmitJSON(ctx, []byte(later))
		if err != nil {
			return err
		}
		// A command that overtakes its job is published again by reconcile, ten seconds later.
		if err := h.see(ctx, accepted.JobID, func(job *client.Job) bool { return job.Version > 0 }); err != nil {
			return err
		}
	}
	var op struct {
		OperationID string
		FinishedAt  *time.Time
		Progress    struct{ Applied int }
	}
	cancel := []byte(`{"command": "cancel", "filter": {"tag": "later"}}`)
	if _, err := h.api.Do(ctx, http.MethodPost, "/api/operations", "application/json", cancel, &op); err != nil {
		return err
	}
	for op.FinishedAt == nil {
		if _, err := h.api.Do(ctx, http.MethodGet, "/api/operations/"+op.OperationID+"?wait=20s", "", nil, &op); err != nil {
			return err
		}
	}
	if op.Progress.Applied != 10 {
		return fmt.Errorf("the operation cancelled %d jobs", op.Progress.Applied)
	}
	return nil
}
