package apiload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// open are the states of a job that has not ended, in the order of its transitions. A job that does nothing never
// goes back, so once the lists have been empty one after the other all jobs have ended.
var open = []string{"SCHEDULED", "PENDING", "QUEUED", "RUNNING", "WAITING", "RETRYING"}

// Drained returns once the API lists no job that has not ended.
func (a *API) Drained(ctx context.Context) error {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for _, status := range open {
		for {
			jobs, _, err := a.List(ctx, "limit=1&status="+status)
			if err != nil {
				return fmt.Errorf("look for jobs that are %s: %w", status, err)
			}
			if len(jobs) == 0 {
				break
			}
			select {
			case <-look.C:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return nil
}

// Completed returns the job once the API shows it as COMPLETED.
func (a *API) Completed(ctx context.Context, id string) (Job, error) {
	for {
		job, err := a.Get(ctx, id, 30*time.Second)
		if errors.Is(err, ErrRefused) && until(ctx, time.Now().Add(time.Second)) {
			continue
		}
		if err != nil {
			return job, fmt.Errorf("follow job %s: %w", id, err)
		}
		switch job.Status {
		case "COMPLETED":
			return job, nil
		case "FAILED", "CANCELLED":
			return job, fmt.Errorf("job %s ended %s", id, job.Status)
		}
	}
}

// Pending returns how many jobs have not begun, as the API counts them, up to a bound of its own.
func (a *API) Pending(ctx context.Context) (int, error) {
	answer, err := a.call(ctx, http.MethodGet, "/api/health", nil, http.StatusOK)
	if err != nil {
		return 0, err
	}
	var health struct {
		Components struct {
			Job struct {
				Details struct {
					PendingJobs int `json:"pendingJobs"`
				} `json:"details"`
			} `json:"job"`
		} `json:"components"`
	}
	err = json.Unmarshal(answer, &health)
	return health.Components.Job.Details.PendingJobs, err
}
