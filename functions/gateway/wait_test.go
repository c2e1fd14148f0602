package gateway_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// finish completes a job as soon as it is accepted, and returns its id.
func (h *fixture) finish() <-chan uuid.UUID {
	finished := make(chan uuid.UUID, 1)
	go func() {
		created, err := jobevent.Decode[jobevent.Created](h.broker.next(h.t))
		if err != nil {
			h.t.Error(err)
		}
		h.scheduler(created.JobID, 1, jobstate.Completed, func(s *jobevent.Status) { s.Attempt, s.Output = 1, []byte(`{"n": 1}`) })
		finished <- created.JobID
	}()
	return finished
}

type endedJob struct {
	JobID   uuid.UUID
	Status  string
	Output  map[string]int
	Payload map[string]any
}

func (h *fixture) wantWhole(r *response, id uuid.UUID) {
	h.t.Helper()
	var job endedJob
	r.want(http.StatusOK).into(&job)
	if job.JobID != id || job.Status != "COMPLETED" || job.Output["n"] != 1 || job.Payload == nil ||
		r.header.Get("Location") != "/api/jobs/"+id.String() {
		h.t.Errorf("answered %s", r.body)
	}
}

func TestSubmitThatWaitsShowsTheEndedJob(t *testing.T) {
	t.Parallel()
	h := open(t)
	finished := h.finish()
	asked := with(`"idempotencyKey": "k"`)
	r := h.post("/api/jobs?wait=60s", asked)
	id := <-finished
	h.wantWhole(r, id)
	again := h.post("/api/jobs", asked, "Prefer", "respond-async, Wait=60; x=1")
	h.wantWhole(again, id)
	if again.header.Get("Idempotent-Replayed") != "true" || again.header.Get("Preference-Applied") != "wait=60" {
		t.Errorf("answered %v", again.header)
	}
}

func TestSubmitWhoseWaitEndsIs202(t *testing.T) {
	t.Parallel()
	h := open(t)
	asked := with(`"idempotencyKey": "k"`)
	first := h.post("/api/jobs?wait=20ms", asked).want(http.StatusAccepted)
	again := h.post("/api/jobs?wait=20ms", asked).want(http.StatusAccepted) // 200 would mean that it has ended
	if again.jobID() != first.jobID() || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("answered %s", again.body)
	}
	h.post("/api/jobs", asked).want(http.StatusOK)
}

// The worker settles the outcome of such a job at once.
func TestTheEventOfAJobShowsThatAClientWaitsForIt(t *testing.T) {
	t.Parallel()
	h := open(t)
	for path, awaited := range map[string]bool{"/api/jobs": false, "/api/jobs?wait=20ms": true} {
		h.post(path, plainJob).want(http.StatusAccepted)
		created, err := jobevent.Decode[jobevent.Created](h.broker.next(t))
		if err != nil || created.Awaited != awaited {
			t.Errorf("%s: %+v, %v", path, created, err)
		}
	}
}

func TestSubmitBeyondTheWaitLimitIsAccepted(t *testing.T) {
	t.Parallel()
	h := openWith(t, func(cfg *gateway.Config) { cfg.Limits.WaitLimit = 1 })
	id := h.submit(plainJob)
	path := "/api/jobs/" + id.String()
	letGo := h.hold(path)
	r := h.post("/api/jobs", plainJob, "Prefer", "wait=60").want(http.StatusAccepted)
	if r.header.Get("Preference-Applied") != "" {
		t.Errorf("answered %v", r.header)
	}
	letGo()
}

func TestStopEndsASubmitThatWaits(t *testing.T) {
	t.Parallel()
	h := open(t)
	answer := make(chan *response, 1)
	go func() { answer <- h.post("/api/jobs?wait=60s", plainJob) }()
	h.broker.next(t) // the job is accepted
	h.stop()
	select {
	case r := <-answer:
		r.want(http.StatusAccepted)
	case <-time.After(20 * time.Second):
		t.Error("still waiting")
	}
}

func TestWaitNeedsTheRoleRead(t *testing.T) {
	t.Parallel()
	h := openWith(t, func(cfg *gateway.Config) { cfg.Auth, cfg.AuditReads = gateway.AuthOn, true })
	submitter, both := h.as("acme", "submit"), h.as("acme", "submit", "read")
	submitter.post("/api/jobs?wait=1s", plainJob).wantError(apierror.Forbidden)
	if n := h.rows(); n != 0 {
		t.Errorf("%d jobs", n)
	}
	submitter.post("/api/jobs", plainJob, "Prefer", "wait=60").want(http.StatusAccepted)
	h.broker.next(t)
	finished := h.finish()
	r := both.post("/api/jobs?wait=60s", plainJob)
	id := <-finished
	h.wantWhole(r, id)
	if read := h.as("", "admin").log("action=job.read&jobId=" + id.String()); len(read) != 1 || read[0].Actor[:4] != "key:" {
		t.Errorf("entered %+v", read)
	}
}

func TestPreferWaitAppliesToReads(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.submit(plainJob)
	path := "/api/jobs/" + id.String()
	answer := make(chan *response, 1)
	go func() { answer <- h.get(path, "Prefer", "wait=60") }()
	for _, ignored := range []string{"wait", "wait=soon", "wait=-1", "wait=0", "waiting=60", "reply"} {
		if r := h.get(path, "Prefer", ignored).want(http.StatusOK); r.header.Get("Preference-Applied") == "wait=60" {
			t.Errorf("%s: %v", ignored, r.header)
		}
	}
	h.scheduler(id, 1, jobstate.Completed, nil)
	r := (<-answer).want(http.StatusOK)
	var job endedJob
	if r.into(&job); job.Status != "COMPLETED" || r.header.Get("Preference-Applied") != "wait=60" {
		t.Errorf("answered %s", r.body)
	}
	if r := h.get(path, "Prefer", "wait=86400"); r.header.Get("Preference-Applied") != "wait=60" {
		t.Errorf("a day is %v", r.header)
	}
}

func TestWaitIsLimitedToAMinute(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.submit(plainJob)
	h.scheduler(id, 1, jobstate.Completed, nil)
	for wait, good := range map[string]bool{
		"0": true, "5": true, "1.5": true, "60": true, "60s": true, "0.5s": true, "500ms": true, "60000ms": true, "1m": true, "1m0s": true,
		"61": false, "61s": false, "880s": false, "60001ms": false, "2m": false, "1h": false, "-1s": false, "": false, "s": false, "1e1s": false,
		"60.5s": false, "5s5s": false,
	} {
		if r := h.get("/api/jobs/" + id.String() + "?wait=" + wait); (r.status == http.StatusOK) != good {
			t.Errorf("%q: %d %s", wait, r.status, r.body)
		} else if !good {
			r.wantError(bad, "wait")
		}
		refused := h.post("/api/jobs?wait="+wait, "{}")
		if refused.wantError(bad); !good {
			refused.wantError(bad, "wait")
		}
	}
}

// A misspelled parameter must not be ignored, and no part of a query that cannot be read.
func TestUnknownParameterIsRefusedForEveryMethod(t *testing.T) {
	t.Parallel()
	h := open(t)
	for path, item := range loadContract(t).Paths.Map() {
		for method, op := range item.Operations() {
			if path == "/events" || op.Extensions["x-role"] == "public" || path == "/metrics" {
				continue
			}
			for query, wrong := range map[string]string{"waitt=5s": "waitt", "tag=50%": "query", "wait=0;tag=a": "query"} {
				r := h.do(method, strings.ReplaceAll(concrete(path), "{name}", "none")+"?"+query, "", "Content-Type", "application/json")
				if r.status != http.StatusBadRequest || len(r.error().Details) != 1 || r.error().Details[0].Path != wrong {
					t.Errorf("%s %s?%s: answered %d %s", method, path, query, r.status, r.body)
				}
			}
		}
	}
	if n := h.rows(); n != 0 {
		t.Errorf("%d jobs", n)
	}
}
