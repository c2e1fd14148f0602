package gateway_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// changesOfTagged returns the operations of the contract that change what a GET shows with an ETag, by method and path.
func changesOfTagged(t *testing.T) map[string]*openapi3.Operation {
	t.Helper()
	paths := loadContract(t).Paths.Map()
	found := map[string]*openapi3.Operation{}
	for tagged, item := range paths {
		if item.Get == nil || !strings.Contains(tagged, "{") || item.Get.Responses.Value("200").Value.Headers["ETag"] == nil {
			continue
		}
		for path, at := range paths {
			if path != tagged && !strings.HasPrefix(path, tagged+"/") {
				continue
			}
			for method, op := range at.Operations() {
				if method != http.MethodGet {
					found[method+" "+path] = op
				}
			}
		}
	}
	return found
}

// A client that sends If-Match relies on it: a condition must be checked or refused.
func TestNoChangeOfATaggedResourceIgnoresIfMatch(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.follow()
	job := func(status jobstate.Status) string {
		id := h.submit(`{"jobType": "MAIL", "payload": 1, "delayMs": 60000}`)
		h.scheduler(id, 3, status, nil)
		return id.String()
	}
	const schedule = `{"cron": "@daily", "job": ` + logJob + `}`
	h.put("/api/schedules/s", schedule).want(http.StatusCreated)
	const alert = `{"to": {"email": ["a@example.org"]}}`
	for name, op := range changesOfTagged(t) {
		t.Run(name, func(t *testing.T) {
			method, path, _ := strings.Cut(name, " ")
			body, kind := "", "application/json"
			status := jobstate.Scheduled
			switch {
			case method == http.MethodPatch:
				body, kind = `{"priority": 9}`, "application/merge-patch+json"
			case strings.HasSuffix(path, "/retry"):
				status = jobstate.Failed
			case strings.HasSuffix(path, "/reschedule"):
				body = `{"delayMs": 1000}`
			case path == "/api/jobs/{jobId}":
				status = jobstate.Completed
			case strings.HasPrefix(path, "/api/controls"):
				h.put("/api/controls/type/s", `{"paused": `+strconv.FormatBool(!strings.HasSuffix(path, "/pause"))+`}`)
				if method == http.MethodPut {
					body = `{"maxRunning": 3}`
				}
			case name == "PUT /api/alerts/{name}":
				body = alert
			case method == http.MethodPut:
				body = schedule
			}
			if strings.HasPrefix(path, "/api/alerts") { // another change may have deleted it
				h.put("/api/alerts/s", alert)
			}
			path = strings.NewReplacer("{jobId}", job(status), "{version}", "3", "{kind}", "type", "{name}", "s",
				"{flowId}", uuid.NewString()).Replace(path)
			refused := h.do(method, path, body, "Content-Type", kind, "If-Match", `W/"99-0"`)
			refused.t = t
			if op.Parameters.GetByInAndName("header", "If-Match") == nil {
				refused.wantError(apierror.InvalidJobRequest)
				return
			}
			refused.wantError(apierror.PreconditionFailed)
			read := strings.Join(strings.Split(path, "/")[:4], "/")
			if strings.HasPrefix(path, "/api/controls") {
				read = strings.Join(strings.Split(path, "/")[:5], "/")
			}
			tag := h.get(read).want(http.StatusOK).header.Get("ETag")
			accepted := h.do(method, path, body, "Content-Type", kind, "If-Match", tag)
			if accepted.status < 200 || accepted.status > 299 {
				t.Errorf("with the ETag %s it is answered %d %s", tag, accepted.status, accepted.body)
			}
			if method == http.MethodDelete && strings.HasPrefix(path, "/api/schedules") {
				h.put(read, schedule).want(http.StatusCreated)
			}
		})
	}
}

func TestACommandForAJobThatHasChangedSinceItWasReadIsRefused(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.submit(`{"jobType": "MAIL", "payload": 1, "delayMs": 60000}`)
	path := "/api/jobs/" + id.String()
	h.scheduler(id, 1, jobstate.Running, nil)
	first := h.get(path).want(http.StatusOK).header.Get("ETag")
	h.scheduler(id, 2, jobstate.Retrying, nil)
	second := h.get(path).want(http.StatusOK).header.Get("ETag")
	h.do(http.MethodPost, path+"/cancel", "", "If-Match", first).wantError(apierror.PreconditionFailed)
	h.do(http.MethodPost, path+"/cancel", "", "If-Match", `"other", `+second).want(http.StatusAccepted)
	h.do(http.MethodPost, path+"/cancel", "", "If-Match", first).want(http.StatusAccepted) // it is stored already
	h.do(http.MethodPost, path+"/reschedule", `{"delayMs": 1}`, "Content-Type", "application/json", "If-Match", second).
		wantError(apierror.InvalidStateTransition) // the cancel comes first
}
