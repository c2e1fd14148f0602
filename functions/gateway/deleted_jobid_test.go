package gateway_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb/statusstore"
	"github.com/jobweaver/jobweaver/shared/apierror"
)

// deleteJob deletes a job as the scheduler's event does.
func (h *fixture) deleteJob(id uuid.UUID) {
	h.t.Helper()
	n, err := h.store.Statuses.ForgetJobs(h.t.Context(), []statusstore.Gone{{JobID: id, Version: 9}})
	if err != nil || n != 1 {
		h.t.Fatalf("%d jobs are deleted, %v", n, err)
	}
}

// The scheduler deletes a new job with the id of a deleted one at once, so its acceptance would be a lie.
func TestIDOfADeletedJobIsRefusedInEachWayToSubmit(t *testing.T) {
	t.Parallel()
	h := open(t)
	own, made, other := newID(time.Now()), h.submit(plainJob), newID(time.Now())
	h.post("/api/jobs", withID(own, "")).want(http.StatusAccepted)
	h.post("/api/jobs", withID(other, "")).want(http.StatusAccepted)
	h.deleteJob(own)
	h.deleteJob(made)
	before := h.rows()
	for whose, id := range map[string]uuid.UUID{"the client's": own, "the gateway's": made} {
		for name, more := range map[string]string{
			"plain": "", "in an order": `, "orderingKey": "o"`, "unique": `, "unique": {"key": "u"}`,
			"debounced": `, "debounce": {"key": "d", "delayMs": 1000}`, "late": `, "expiresAt": "2020-01-01T00:00:00Z"`,
		} {
			t.Run(whose+", "+name, func(t *testing.T) {
				refused := h.post("/api/jobs", withID(id, more))
				refused.t = t
				if name == "late" {
					refused.wantError(apierror.InvalidJobRequest, "expiresAt")
					return
				}
				refused.wantError(apierror.JobDeleted, "jobId")
			})
		}
		h.post("/api/batches", fmt.Sprintf(`{"jobs": [%s, %s]}`, plainJob, withID(id, ""))).
			wantError(apierror.JobDeleted, "jobs[1].jobId")
		event := fmt.Sprintf(`{"specversion": "1.0", "type": "io.jobweaver.job.submit.v1", "source": "s", "id": %q, "data": %s}`,
			uuid.NewString(), withID(id, ""))
		h.post("/events", event, "Content-Type", "application/cloudevents+json").
			wantError(apierror.InvalidEvent, "data.jobId")
	}
	if n := h.rows(); n != before {
		t.Errorf("%d jobs, want %d", n, before)
	}
}

func TestInABatchOnlyTheJobsWithIDsOfDeletedJobsAreRefused(t *testing.T) {
	t.Parallel()
	h := open(t)
	deleted, live, fresh := newID(time.Now()), newID(time.Now()), newID(time.Now())
	h.post("/api/jobs", withID(deleted, "")).want(http.StatusAccepted)
	h.post("/api/jobs", withID(live, "")).want(http.StatusAccepted)
	h.deleteJob(deleted)
	var answer struct {
		Results []struct {
			Status int
			Error  struct{ ErrorCode apierror.Code }
		}
	}
	body := fmt.Sprintf(`{"jobs": [%s, %s, %s, %s]}`, withID(deleted, ""), withID(live, ""), withID(fresh, ""), plainJob)
	h.post("/api/jobs/batch", body).want(http.StatusOK).into(&answer)
	if got := fmt.Sprint(answer.Results); got != "[{409 {API.JOB_DELETED}} {200 {}} {202 {}} {202 {}}]" {
		t.Errorf("answered %s", got)
	}
}
