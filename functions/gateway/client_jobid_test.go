package gateway_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobspec"
)

// withID returns a job with an id made by the client, and other members.
func withID(id uuid.UUID, more string) string { return with(fmt.Sprintf(`"jobId": %q%s`, id, more)) }

// newID makes an id with a given time.
func newID(at time.Time) uuid.UUID {
	id := uuid.Must(uuid.NewV7())
	for i, ms := 5, at.UnixMilli(); i >= 0; i, ms = i-1, ms>>8 {
		id[i] = byte(ms)
	}
	return id
}

func TestIDFromTheClientIsTheJobsIDAndKey(t *testing.T) {
	t.Parallel()
	h := open(t)
	for name, more := range map[string]string{
		"plain": "", "in an order": `, "orderingKey": "o"`, "to expire": `, "expiresAt": "2030-01-01T00:00:00Z"`,
	} {
		id := newID(time.Now())
		for i, status := range []int{http.StatusAccepted, http.StatusOK} {
			if got := h.post("/api/jobs", withID(id, more)).want(status).jobID(); got != id {
				t.Errorf("%s, time %d: job %s, want %s", name, i, got, id)
			}
		}
		if event := h.broker.next(t); !strings.HasPrefix(event.ID(), id.String()) {
			t.Errorf("%s: event %s", name, event.ID())
		}
		h.post("/api/jobs", withID(id, more+`, "priority": 9`)).wantError(apierror.IdempotencyConflict)
		var page struct{ Jobs []struct{ JobID uuid.UUID } }
		h.get("/api/jobs?idempotencyKey=" + id.String()).want(http.StatusOK).into(&page)
		if len(page.Jobs) != 1 || page.Jobs[0].JobID != id {
			t.Errorf("%s: with its key there are the jobs %v", name, page.Jobs)
		}
	}
}

func TestRepeatedIDInABatchIsOneJob(t *testing.T) {
	t.Parallel()
	h := open(t)
	for _, more := range []string{"", `, "orderingKey": "o"`} {
		id, other := newID(time.Now()), newID(time.Now())
		jobs := []string{withID(id, more), withID(other, more), withID(id, more), withID(id, more+`, "priority": 9`)}
		for _, first := range []int{http.StatusAccepted, http.StatusOK} {
			var answer struct{ Results []struct{ Status int } }
			h.post("/api/jobs/batch", `{"jobs": [`+strings.Join(jobs, ",")+`]}`).want(http.StatusOK).into(&answer)
			got := fmt.Sprint(answer.Results)
			if want := fmt.Sprintf("[{%d} {%d} {200} {409}]", first, first); got != want {
				t.Errorf("with %q answered %s, want %s", more, got, want)
			}
		}
	}
	if n := h.rows(); n != 4 {
		t.Errorf("%d jobs, want 4", n)
	}
}

func TestIDOfAnotherJobIsRefused(t *testing.T) {
	t.Parallel()
	h := openLocked(t)
	a, b := h.as("a", "submit", "read"), h.as("b", "submit", "read")
	taken := newID(time.Now())
	a.post("/api/jobs", withID(taken, "")).want(http.StatusAccepted)
	made := a.post("/api/jobs", plainJob).want(http.StatusAccepted).jobID()
	keyed := newID(time.Now())
	a.post("/api/jobs", with(fmt.Sprintf(`"idempotencyKey": %q`, keyed))).want(http.StatusAccepted)
	for _, more := range []string{"", `, "orderingKey": "o"`} {
		for name, refused := range map[string]*response{
			"another owner's":          b.post("/api/jobs", withID(taken, more)),
			"another owner's, made":    b.post("/api/jobs", withID(made, more)),
			"one that the server made": a.post("/api/jobs", withID(made, more)),
			"one that is only a key":   a.post("/api/jobs", withID(keyed, more)),
		} {
			t.Run(name+more, func(t *testing.T) {
				refused.t = t
				refused.wantError(apierror.IdempotencyConflict)
			})
		}
	}
	b.get("/api/jobs/" + taken.String()).want(http.StatusNotFound)
	if n := h.rows(); n != 3 {
		t.Errorf("%d jobs, want 3", n)
	}
}

func TestInvalidIDIsRefused(t *testing.T) {
	t.Parallel()
	h := open(t)
	v7 := newID(time.Now())
	for name, body := range map[string]string{
		"no UUID":            with(`"jobId": "order-17"`),
		"a number":           with(`"jobId": 17`),
		"another version":    withID(uuid.New(), ""),
		"in capitals":        with(fmt.Sprintf(`"jobId": %q`, strings.ToUpper(v7.String()))),
		"with a key":         withID(v7, `, "idempotencyKey": "k"`),
		"of a time to come":  withID(newID(time.Now().Add(jobspec.MaxIDAhead+time.Minute)), ""),
		"nothing but zeroes": withID(uuid.Nil, ""),
	} {
		t.Run(name, func(t *testing.T) {
			refused := h.post("/api/jobs", body)
			refused.t = t
			refused.wantError(apierror.InvalidJobRequest, "jobId")
		})
	}
	h.post("/api/jobs", withID(newID(time.Now().Add(jobspec.MaxIDAhead-time.Minute)), "")).want(http.StatusAccepted)
	h.post("/api/jobs", withID(newID(time.Unix(0, 0)), "")).want(http.StatusAccepted)
	h.post("/api/schedules", fmt.Sprintf(`{"name": "s", "cron": "@daily", "job": %s}`, withID(v7, ""))).
		wantError(apierror.InvalidJobRequest, "job.jobId")
}
