package gateway_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

func openAliased(t *testing.T) *fixture {
	t.Helper()
	return openWith(t, func(cfg *gateway.Config) { cfg.Aliases = true })
}

// The calls in the documentation of asyncJobEngine.
func TestTheExamplesOfAsyncJobEngineWork(t *testing.T) {
	t.Parallel()
	h := openAliased(t)
	id := h.post("/jobs", `{"type": "EMAIL", "payload": {"to": "user@example.com", "subject": "Welcome"}}`).want(http.StatusAccepted).jobID()
	h.broker.next(t)
	shown := string(h.get("/jobs/" + id.String()).want(http.StatusOK).body)
	for _, want := range []string{`"jobType":"EMAIL"`, `"to":["user@example.com"]`, `"text":"Welcome"`, `"status":"PENDING"`} {
		if !strings.Contains(shown, want) {
			t.Errorf("%s is not in %s", want, shown)
		}
	}
	h.scheduler(id, 1, jobstate.Failed, nil)
	if dead := string(h.get("/jobs/dead?page=0&size=20").want(http.StatusOK).body); !strings.Contains(dead, id.String()) {
		t.Errorf("dead jobs: %s", dead)
	}
	h.post("/jobs/"+id.String()+"/retry", "").want(http.StatusAccepted)
	health := string(h.get("/actuator/health").want(http.StatusOK).body)
	for _, want := range []string{`"status":"UP"`, `"components":{`, `"job":{`, `"details":{`, "pendingJobs", "deadJobs", "activeThreads", "poolSize"} {
		if !strings.Contains(health, want) {
			t.Errorf("%s is not in %s", want, health)
		}
	}
}

// submitJob("job2", "user2", 5, now + 10) of the Redis scheduler, and its job1 with priority 10.
func TestTheNamesOfTheRedisSchedulerWork(t *testing.T) {
	t.Parallel()
	h := openAliased(t)
	now := time.Now().Unix()
	for given, want := range map[string]string{
		fmt.Sprintf(`"priority": 10, "delayUntil": %d`, now-1): `"priority":9,`,
		fmt.Sprintf(`"priority": 5, "delayUntil": %d`, now+10): `"runAt":"` + time.Unix(now+10, 0).UTC().Format(time.RFC3339) + `"`,
		`"priority": 7`:                    `"priority":7,`,
		`"priority": -3`:                   `"priority":0,`,
		`"priority": 99999999999999999999`: `"priority":9,`,
		`"maxAttempts": 3`:                 `"maxRetryCount":2,`,
		`"maxAttempts": 1`:                 `"maxRetryCount":0,`,
	} {
		id := h.post("/jobs", `{"jobType": "MAIL", "ownerId": "user2", "jobDetails": {"n": 1}, `+given+`}`).want(http.StatusAccepted).jobID()
		if shown := string(h.get("/jobs/" + id.String()).body); !strings.Contains(shown, want) || !strings.Contains(shown, `"payload":{"n":1}`) {
			t.Errorf("%s: %s is not in %s", given, want, shown)
		}
	}
}

func TestAliasWithInvalidValuesIsRefused(t *testing.T) {
	t.Parallel()
	h := openAliased(t)
	for body, paths := range map[string][]string{
		`[]`: nil, `{`: nil, `null`: nil, `{"type": "EMAIL", "payload": 1}`: {"payload"}, `{"type": 1, "payload": 1}`: {"type"},
		`{"jobType": 1, "jobDetails": 1}`:                                         {"jobType"},
		`{"type": "EMAIL", "jobDetails": {"to": "?"}}`:                            {"jobDetails"},
		`{"type": "MAIL", "jobType": "MAIL", "payload": 1}`:                       {"type"},
		`{"type": "MAIL", "payload": 1, "jobDetails": 1}`:                         {"jobDetails"},
		`{"type": "MAIL", "payload": 1, "maxAttempts": 0}`:                        {"maxAttempts"},
		`{"type": "MAIL", "payload": 1, "maxAttempts": 102, "delayUntil": -1}`:    {"maxAttempts", "delayUntil"},
		`{"type": "MAIL", "payload": 1, "maxAttempts": 1, "maxRetryCount": 0}`:    {"maxAttempts"},
		`{"type": "MAIL", "payload": 1, "maxRetryCount": -1}`:                     {"maxRetryCount"},
		`{"type": "MAIL", "payload": 1, "priority": "high"}`:                      {"priority"},
		`{"type": "MAIL", "payload": 1, "priority": 1.5}`:                         {"priority"},
		`{"type": "MAIL", "payload": 1, "delayUntil": "tomorrow"}`:                {"delayUntil"},
		`{"type": "MAIL", "payload": 1, "delayUntil": 9999999999}`:                {"delayUntil"},
		`{"type": "MAIL", "payload": 1, "delayUntil": 9, "runAt": null, "a": ""}`: {"delayUntil"},
	} {
		refused := h.post("/jobs", body)
		refused.wantError(apierror.InvalidJobRequest)
		var given []string
		for _, d := range refused.error().Details {
			path, _, _ := strings.Cut(d.Path, ".")
			given = append(given, path)
		}
		if paths != nil && (!strings.Contains(refused.error().Message, given[0]) ||
			!slices.Equal(slices.Compact(given), paths)) {
			t.Errorf("%s is refused with %s", body, refused.body)
		}
	}
	if h.rows() != 0 {
		t.Errorf("%d jobs", h.rows())
	}
	h.get("/jobs/" + uuid.NewString()).wantError(apierror.JobNotFound)
	h.get("/jobs/nothing/here").wantError(apierror.NotFound)
	h.post("/api/jobs", `{"type": "MAIL", "payload": 1}`).wantError(apierror.InvalidJobRequest)
	h.post("/api/jobs", `{"jobType": "MAIL", "payload": 1, "priority": 10}`).wantError(apierror.InvalidJobRequest)
}

func TestBrowserAtAnAliasGetsTheDashboard(t *testing.T) {
	t.Parallel()
	h := openAliased(t)
	if page := h.get("/jobs", "Accept", "text/html"); !strings.HasPrefix(page.header.Get("Content-Type"), "text/html") {
		t.Errorf("%v", page.header)
	}
	if list := h.get("/jobs").want(http.StatusOK); !strings.Contains(string(list.body), `"jobs":[]`) {
		t.Errorf("%s", list.body)
	}
}

func TestAliasesNeedTheSameKeyAndCanBeSwitchedOff(t *testing.T) {
	t.Parallel()
	locked := openWith(t, func(cfg *gateway.Config) { cfg.Aliases, cfg.Auth = true, gateway.AuthOn })
	locked.get("/jobs").wantError(apierror.Unauthorized)
	locked.as("a", "submit").get("/jobs").wantError(apierror.Forbidden)
	off := open(t)
	off.get("/jobs").wantError(apierror.NotFound)
	off.get("/actuator/health").wantError(apierror.NotFound)
	off.post("/jobs", plainJob).wantError(apierror.NotFound)
}

// POST /jobs/callback of the orchestration platform has COMPLETED or FAILED, an optional secret and no attempt.
func TestCallbackWithoutAttemptAndSecretNeedsTheSetting(t *testing.T) {
	t.Parallel()
	h := openWith(t, func(cfg *gateway.Config) { cfg.Aliases, cfg.AliasCallbacks = true, true })
	id := h.waiting(2, time.Hour)
	body := fmt.Sprintf(`{"jobId": %q, "status": "COMPLETED", "output": {"shipment": 17}}`, id)
	h.post("/jobs/callback", body, "X-Callback-Secret", "wrong").wantError(apierror.Unauthorized)
	h.post("/api/jobs/callback", body).wantError(apierror.Unauthorized)
	h.post("/jobs/callback", body).want(http.StatusOK)
	if e := h.broker.next(t); e.ID() != jobevent.OutcomeID(id, 2, "callback") {
		t.Errorf("got %s", e)
	}
	if again := h.post("/jobs/callback", body, "X-Callback-Secret", globalSecret).want(http.StatusOK); again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("the same again: %v", again.header)
	}
	h.post("/jobs/callback", fmt.Sprintf(`{"jobId": %q, "status": "FAILED"}`, uuid.New())).wantError(apierror.JobNotFound)
	h.post("/jobs/callback", `{"status": "FAILED"}`).wantError(apierror.InvalidJobRequest)

	closed := openAliased(t)
	closed.post("/jobs/callback", body).wantError(apierror.Unauthorized)
}
