package gateway_test

import (
	"encoding/json"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// readContract reads openapi.yaml once for all tests, which change nothing in it.
var readContract = sync.OnceValues(func() (*openapi3.T, error) {
	body, err := os.ReadFile("openapi.yaml")
	if err != nil {
		return nil, err
	}
	return openapi3.NewLoader().LoadFromData(body)
})

func loadContract(t testing.TB) *openapi3.T {
	t.Helper()
	doc, err := readContract()
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestTheContractIsValid(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("one goroutine: there is nothing to race")
	}
	doc := loadContract(t)
	if doc.OpenAPI != "3.1.0" {
		t.Errorf("it is of version %s", doc.OpenAPI)
	}
	err := doc.Validate(t.Context(), openapi3.IsOpenAPI31OrLater(), openapi3.EnableExamplesValidation(),
		openapi3.EnableSchemaFormatValidation(), openapi3.EnableSchemaDefaultsValidation())
	if err != nil {
		t.Error(err)
	}
}

func TestTheContractHasItsEndpoints(t *testing.T) {
	t.Parallel()
	var got []string
	ids := map[string]bool{}
	for path, item := range loadContract(t).Paths.Map() {
		for method, op := range item.Operations() {
			got = append(got, method+" "+path)
			if op.OperationID == "" || ids[op.OperationID] || op.Summary == "" {
				t.Errorf("%s %s has no operationId of its own, or no summary", method, path)
			}
			ids[op.OperationID] = true
			checkAnswers(t, method+" "+path, op)
		}
	}
	want := []string{"POST /api/jobs", "GET /api/jobs", "POST /api/jobs/batch", "GET /api/jobs/{jobId}",
		"GET /api/jobs/{jobId}/logs", "POST /api/jobs/{jobId}/cancel", "POST /api/jobs/{jobId}/retry",
		"POST /api/jobs/{jobId}/reschedule", "POST /api/jobs/{jobId}/run-again", "POST /api/jobs/callback", "DELETE /api/jobs/{jobId}", "PATCH /api/jobs/{jobId}", "GET /api/jobs/dead", "GET /api/jobs/dead/groups",
		"POST /api/operations", "GET /api/operations", "GET /api/operations/{operationId}", "POST /api/operations/{operationId}/abort",
		"POST /api/batches", "GET /api/batches", "GET /api/batches/{batchId}", "POST /api/batches/{batchId}/close",
		"POST /api/batches/{batchId}/cancel", "POST /api/batches/{batchId}/retry",
		"POST /api/flows", "GET /api/flows", "GET /api/flows/{flowId}", "POST /api/flows/{flowId}/cancel", "POST /api/flows/{flowId}/retry",
		"GET /api/queues", "GET /api/queues/{queue}", "PUT /api/queues/{queue}", "DELETE /api/queues/{queue}", "PUT /api/job-types/{type}", "DELETE /api/job-types/{type}", "PUT /api/job-types/{type}/schedules", "GET /api/queues/{queue}/shares", "GET /api/audit", "GET /api/controls", "GET /api/controls/{kind}/{name}", "PUT /api/controls/{kind}/{name}",
		"DELETE /api/controls/{kind}/{name}", "POST /api/controls/{kind}/{name}/pause",
		"POST /api/controls/{kind}/{name}/resume", "GET /api/workers",
		"PUT /api/workers/{workerId}/drain", "DELETE /api/workers/{workerId}/drain",
		"POST /api/workers/claim", "POST /api/workers/heartbeat", "POST /api/workers/settle", "POST /api/workers/checkpoint", "POST /api/workers/wait", "POST /api/workers/steps", "POST /api/workers/steps/read",
		"GET /api/stats", "GET /api/owners", "GET /api/lag", "GET /api/stream",
		"GET /api/jobs/{jobId}/deliveries", "POST /api/jobs/{jobId}/deliveries/{version}/retry", "GET /api/deliveries",
		"POST /api/schedules", "GET /api/schedules", "GET /api/schedules/{name}", "PUT /api/schedules/{name}",
		"DELETE /api/schedules/{name}", "POST /api/schedules/{name}/pause", "POST /api/schedules/{name}/resume",
		"POST /api/schedules/{name}/run", "GET /api/schedules/{name}/ticks", "GET /api/schedule-times",
		"POST /api/alerts", "GET /api/alerts", "GET /api/alerts/{name}", "PUT /api/alerts/{name}", "DELETE /api/alerts/{name}",
		"POST /api/alerts/{name}/pause", "POST /api/alerts/{name}/resume", "POST /api/alerts/{name}/test", "GET /api/alerts/{name}/notices",
		"POST /api/keys", "GET /api/keys", "GET /api/keys/{keyId}", "DELETE /api/keys/{keyId}", "POST /api/keys/{keyId}/rotate", "GET /api/me",
		"GET /api/webhook-secrets", "GET /api/login",
		"GET /api/rejected", "GET /api/rejected/{rejectedId}", "DELETE /api/rejected/{rejectedId}", "POST /api/rejected/{rejectedId}/redrive",
		"POST /events", "POST /hooks/{name}", "GET /api/hooks", "GET /api/health", "GET /api/job-types", "GET /api/job-types/{type}", "GET /api/openapi.yaml", "GET /api/openapi.json", "GET /api/reference", "GET /", "GET /health/liveness",
		"GET /health/readiness", "GET /metrics"}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}

// An operation with a request body has the errors of a body, one that uses the store has 503.
func checkAnswers(t *testing.T, name string, op *openapi3.Operation) {
	t.Helper()
	want := []int{}
	if op.Extensions["x-role"] != "public" {
		want = append(want, 401, 403, 503)
	}
	if !strings.HasPrefix(name, "GET /health/") {
		want = append(want, http.StatusTooManyRequests)
	}
	if op.RequestBody != nil {
		want = append(want, 202, 400, 408, 413, 415, 503)
	}
	if strings.Contains(name, "/keys") || strings.Contains(name, "/workers/") {
		want = slices.DeleteFunc(want, func(s int) bool { return s == 202 })
	}
	if strings.Contains(name, "/schedules") || strings.Contains(name, "/alerts") || strings.HasSuffix(name, "/batches") || strings.HasSuffix(name, "/flows") {
		want = append(slices.DeleteFunc(want, func(s int) bool { return s == 202 }), 400, 503)
	}
	if strings.Contains(name, "/schedules/{name}") || strings.Contains(name, "/alerts/{name}") || strings.Contains(name, "{jobId}") || strings.Contains(name, "{operationId}") ||
		strings.Contains(name, "{batchId}") || strings.Contains(name, "{flowId}") {
		want = append(want, 404, 503)
	}
	if strings.HasSuffix(name, "/cancel") || strings.HasSuffix(name, "{batchId}/retry") || strings.HasSuffix(name, "{jobId}/retry") || strings.HasSuffix(name, "/reschedule") ||
		strings.HasPrefix(name, "DELETE /api/jobs/") || strings.HasSuffix(name, "/abort") || name == "POST /api/operations" || name == "POST /api/jobs" {
		want = append(want, 202, 409)
	}
	if strings.Contains(name, "/controls/") {
		want = append(want, 200, 400, 503)
	}
	if strings.HasSuffix(name, "/callback") {
		want = append(slices.DeleteFunc(want, func(s int) bool { return s == 202 }), 200, 401, 404, 409)
	}
	if strings.HasSuffix(name, "/batch") || strings.HasPrefix(name, "PUT ") { // their responses differ
		want = slices.DeleteFunc(want, func(s int) bool { return s == 202 })
	}
	for _, status := range want {
		answer := op.Responses.Status(status)
		if answer == nil {
			t.Errorf("%s does not answer %d", name, status)
			continue
		}
		if answer.Value.Headers["X-Trace-Id"] == nil {
			t.Errorf("%s answers %d without X-Trace-Id", name, status)
		}
		if status == http.StatusUnauthorized && op.Security == nil && answer.Value.Headers["WWW-Authenticate"] == nil {
			t.Errorf("%s answers 401 without WWW-Authenticate", name)
		}
		if (status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests) && answer.Value.Headers["Retry-After"] == nil {
			t.Errorf("%s answers %d without Retry-After", name, status)
		}
	}
}

func TestContractHasTheLimitsOfTheCode(t *testing.T) {
	t.Parallel()
	schemas := loadContract(t).Components.Schemas
	var codes, states []any
	for _, e := range apierror.Table() {
		if e.Status != 0 {
			codes = append(codes, string(e.Code))
		}
	}
	for _, s := range jobstate.All() {
		states = append(states, string(s))
	}
	if got := schemas["ErrorCode"].Value.Enum; !slices.Equal(got, codes) {
		t.Errorf("error codes are %v, want %v", got, codes)
	}
	if got := schemas["Status"].Value.Enum; !slices.Equal(got, states) {
		t.Errorf("states are %v, want %v", got, states)
	}
}

// The decoder accepts exactly the requests that match the contract.
func TestTheContractAndTheDecoderAgree(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("one goroutine: there is nothing to race")
	}
	schema := loadContract(t).Components.Schemas["JobRequest"].Value
	long := strings.Repeat("ü", 255)
	for _, fields := range []string{
		``, `"maxRetryCount": 0`, `"maxRetryCount": 100`, `"maxRetryCount": 101`, `"maxRetryCount": -1`,
		`"maxRetryCount": 1.5`, `"maxRetryCount": 1.0`, `"delayMs": 452.00`, `"priority": -5.0`, `"maxRetryCount": null`, `"priority": 9`, `"priority": 10`, `"queue": "a-1"`,
		`"queue": "A"`, `"queue": ""`, `"timeoutMs": 0`, `"timeoutMs": 604800000`, `"timeoutMs": 604800001`,
		`"delayMs": 315360000000`, `"delayMs": 315360000001`, `"delayMs": 0, "runAt": "2026-11-22T08:00:00Z"`,
		`"runAt": "2026-11-22T08:00:00+01:00"`, `"runAt": "2026-11-22"`, `"runAt": "1969-12-31T23:59:59Z"`, `"runAt": 5`, `"x": 1`,
		`"idempotencyKey": "` + long + `"`, `"idempotencyKey": "` + long + `x"`, `"idempotencyKey": ""`,
		`"tags": ["a", "b"]`, `"tags": ["a", "a"]`, `"tags": [""]`, `"tags": "a"`, `"ownerId": "a"`,
		`"tags": ["a","b","c","d","e","f","g","h","i","j","k","l","m","n","o","p","q"]`,
		`"retryPolicy": {"type": "exponential"}`, `"retryPolicy": {"type": "exponential", "jitter": 1.1}`,
		`"retryPolicy": {"type": "fixed"}`, `"retryPolicy": {"type": "fixed", "delayMs": 0, "jitter": 1}`,
		`"retryPolicy": {"type": "fixed", "delayMs": 1, "baseMs": 1}`, `"retryPolicy": {}`, `"retryPolicy": null`,
		`"retryPolicy": {"type": "list", "delaysMs": []}`, `"retryPolicy": {"type": "list", "delaysMs": [1]}`,
		`"retryPolicy": {"type": "exponential", "baseMs": 31536000001}`, `"callbackUrl": "https://example.org/"`, `"callbackUrl": ""`,
		`"callbackUrl": null`, `"callbackUrl": "https://example.org/` + strings.Repeat("x", 1980) + `"`, `"callbackUrl": "https://example.org/` + strings.Repeat("x", 1981) + `"`,
		`"orderingKey": "x"`, `"orderingKey": ""`, `"orderingKey": "` + long + `"`, `"orderingKey": "` + long + `x"`,
		`"fairnessKey": "x"`, `"fairnessKey": ""`, `"fairnessKey": "` + long + `"`, `"fairnessKey": "` + long + `x"`, `"fairnessKey": null`,
		`"orderingKey": null`, `"expiresAt": "2026-11-22T08:00:00Z"`, `"expiresAt": "2026-11-22"`, `"expiresAt": 5`,
		`"after": []`, `"after": null`, `"after": [null]`, `"after": ["x"]`, `"after": [` + someID + `]`,
		`"after": [` + strings.ToUpper(someID) + `]`, `"after": [` + someID + `, ` + someID + `]`, `"after": ` + someID,
		`"onDependencyFailure": "run"`, `"onDependencyFailure": "cancel", "after": [` + someID + `]`,
		`"onDependencyFailure": "run", "after": []`, `"onDependencyFailure": "hope", "after": [` + someID + `]`,
	} {
		agree(t, schema, strings.TrimSuffix(`{"jobType": "OWN", "payload": null, `+fields, ", ")+"}")
	}
	for _, steps := range []string{
		``, `{"type": "SLEEP", "durationMs": 0}`, `{"type": "SLEEP", "durationMs": 86400001}`, `{"type": "SLEEP"}`,
		`{"type": "SLEEP", "durationMs": 1, "message": "x"}`, `{"type": "LOG", "message": ""}`, `{"type": "LOG"}`,
		`{"type": "COMPUTE", "iterations": 10000000000}`, `{"type": "COMPUTE", "iterations": 10000000001}`,
		`{"type": "HTTP_CALL"}`, `{"type": "HTTP_CALL", "latencyMs": 1}`, `{"type": "HTTP_CALL", "method": "GET"}`,
		`{"type": "HTTP_CALL", "url": "http://x/", "method": "TRACE"}`, `{"type": "HTTP_CALL", "url": "http://x/"}`,
		`{"type": "FAIL"}`, `{"type": "FAIL", "failAttempts": 0}`, `{"type": "FAIL", "failAttempts": 2147483648}`,
		`{"type": "FAIL", "errorCode": "a b"}`, `{"type": "FAIL", "errorCode": "A.b-1", "retryable": false}`,
		`{"type": "WAIT"}`, `{}`, `null`, `{"type": "LOG", "message": "` + strings.Repeat("x", 4097) + `"}`,
	} {
		agree(t, schema, `{"jobType": "SIMULATION", "payload": {"steps": [`+steps+`]}}`)
	}
	for _, body := range []string{`{}`, `[]`, `{"jobType": "OWN"}`, `{"payload": 1}`, `{"jobType": "", "payload": 1}`,
		`{"jobType": "a b", "payload": 1}`, `{"jobType": "SIMULATION", "payload": {}}`,
		`{"jobType": "SIMULATION", "payload": {"steps": [{"type": "FAIL"}], "x": 1}}`} {
		agree(t, schema, body)
	}
}

const someID = `"01936f3e-5f3e-7cc0-8000-0123456789ab"`

func agree(t *testing.T, schema *openapi3.Schema, body string) {
	t.Helper()
	_, err := jobspec.Decode([]byte(body))
	agreeWith(t, schema, body, err)
}

func agreeWith(t *testing.T, schema *openapi3.Schema, body string, byCode error) {
	t.Helper()
	var value any
	if err := json.Unmarshal([]byte(body), &value); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	byContract := schema.VisitJSON(value, openapi3.EnableJSONSchema2020(), openapi3.VisitAsRequest(),
		openapi3.EnableFormatValidation())
	if (byContract == nil) != (byCode == nil) {
		t.Errorf("%.200s\nby the contract: %v\nby the code: %v", body, byContract, byCode)
	}
}

func TestTheContractAndTheDecoderOfControlsAgree(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("one goroutine: there is nothing to race")
	}
	schema := loadContract(t).Components.Schemas["ControlRequest"].Value
	for _, body := range []string{
		`{}`, `[]`, `null`, `{"paused": true}`, `{"paused": null}`, `{"paused": 1}`, `{"maxRunning": null, "startsPerSecond": null}`,
		`{"maxRunning": 0}`, `{"maxRunning": 1000000}`, `{"maxRunning": 1000001}`, `{"maxRunning": -1}`, `{"maxRunning": 1.5}`,
		`{"maxRunning": "1"}`, `{"startsPerSecond": 0.1}`, `{"startsPerSecond": 0}`, `{"startsPerSecond": -1}`,
		`{"startsPerSecond": 0.00001}`, `{"startsPerSecond": 0.000009}`, `{"startsPerSecond": 100000}`,
		`{"startsPerSecond": 100000.5}`, `{"startsPerSecond": true}`, `{"weight": null}`, `{"weight": 1}`, `{"weight": 100}`,
		`{"weight": 0}`, `{"weight": 101}`, `{"weight": 1.5}`, `{"weight": "1"}`, `{"x": 1}`,
	} {
		_, err := apibody.DecodeControl([]byte(body))
		agreeWith(t, schema, body, err)
	}
}

func TestTheContractAndTheDecoderOfKeysAgree(t *testing.T) {
	t.Parallel()
	schemas := loadContract(t).Components.Schemas
	for _, body := range []string{
		`{}`, `[]`, `null`, `{"name": "a", "roles": ["read"]}`, `{"name": "a", "roles": []}`, `{"name": "a"}`, `{"roles": ["read"]}`,
		`{"name": "a", "roles": ["read", "read"]}`, `{"name": "a", "roles": ["submit", "read", "operate", "admin"]}`, `{"name": "a", "roles": null}`,
		`{"name": "a", "roles": ["root"]}`, `{"name": "a", "roles": "read"}`, `{"name": "", "roles": ["read"]}`, `{"name": null, "roles": ["read"]}`,
		`{"name": "a", "roles": ["read"], "ownerId": null}`, `{"name": "a", "roles": ["read"], "ownerId": ""}`, `{"name": "a", "roles": ["read"], "ownerId": "b"}`,
		`{"name": "a", "roles": ["read"], "expiresAt": null}`, `{"name": "a", "roles": ["read"], "expiresAt": "2027-11-22"}`,
		`{"name": "a", "roles": ["read"], "expiresAt": "2027-11-22T00:00:00Z"}`, `{"name": "a", "roles": ["read"], "x": 1}`,
		`{"name": "` + strings.Repeat("x", 256) + `", "roles": ["read"]}`,
	} {
		_, err := apibody.DecodeNewKey([]byte(body))
		agreeWith(t, schemas["KeyRequest"].Value, body, err)
	}
	for _, body := range []string{`{}`, `[]`, `{"overlapSeconds": 0}`, `{"overlapSeconds": 2592000}`, `{"overlapSeconds": 2592001}`,
		`{"overlapSeconds": -1}`, `{"overlapSeconds": 1.5}`, `{"overlapSeconds": null}`, `{"x": 1}`} {
		_, err := apibody.DecodeRotation([]byte(body))
		agreeWith(t, schemas["Rotation"].Value, body, err)
	}
}

func TestTheContractAndTheDecoderOfCallbacksAgree(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("one goroutine: there is nothing to race")
	}
	schema := loadContract(t).Components.Schemas["Callback"].Value
	for _, more := range []string{
		``, `, "status": "DONE"`, `, "status": "COMPLETED"`, `, "status": "COMPLETED", "output": 1`, `, "status": "COMPLETED", "output": null`,
		`, "status": "COMPLETED", "errorCode": "A"`, `, "status": "COMPLETED", "errorCode": null, "message": null, "progress": null`,
		`, "status": "COMPLETED", "x": 1`, `, "status": "FAILED"`, `, "status": "FAILED", "errorCode": "A.b-1", "message": "m", "retryable": false`,
		`, "status": "FAILED", "errorCode": ""`, `, "status": "FAILED", "errorCode": "a b"`, `, "status": "FAILED", "errorCode": null`,
		`, "status": "FAILED", "message": "` + strings.Repeat("ü", 4096) + `"`, `, "status": "FAILED", "message": "` + strings.Repeat("x", 4097) + `"`,
		`, "status": "FAILED", "retryable": null`, `, "status": "FAILED", "retryable": 1`, `, "status": "FAILED", "output": 1`,
		`, "status": "PROGRESS"`, `, "status": "PROGRESS", "progress": null`, `, "status": "PROGRESS", "progress": {}`,
		`, "status": "PROGRESS", "progress": {"percent": 100, "message": null}`, `, "status": "PROGRESS", "progress": {"percent": 101}`,
		`, "status": "PROGRESS", "progress": {"percent": 0.5}`, `, "status": "PROGRESS", "progress": {"percent": 0, "x": 1}`,
		`, "status": "PROGRESS", "progress": {"percent": 0, "message": "` + strings.Repeat("x", 1001) + `"}`,
	} {
		for _, attempt := range []string{"1", "0", "2147483647", "2147483648", "1.5", `"1"`, "null"} {
			body := `{"jobId": ` + someID + `, "attempt": ` + attempt + more + `}`
			_, err := apibody.DecodeCallback([]byte(body))
			agreeWith(t, schema, body, err)
		}
	}
}

// unevaluatedProperties makes the contract refuse unknown fields of responses; not every library supports it.
func TestTheContractRefusesUnknownFieldsOfAnswers(t *testing.T) {
	t.Parallel()
	schemas := loadContract(t).Components.Schemas
	const id = `"01936f3e-5f3e-7cc0-8000-0123456789ab"`
	summary := `{"jobId": ` + id + `, "jobType": "OWN", "queue": "default", "ownerId": null, "status": "PENDING",
		"priority": 0, "attempt": 0, "retryCount": 0, "maxRetryCount": 3, "createdAt": "2026-11-22T08:00:00Z",
		"updatedAt": "2026-11-22T08:00:00.5Z", "runAt": null, "nextRunAt": null, "startedAt": null, "finishedAt": null,
		"progress": null, "output": null, "lastError": {"errorCode": "A", "message": "b"}, "traceId": ` + id + `,
		"tags": [], "blockedBy": [{"kind": "order", "id": "k"}], "version": 0, "callbackDeadlineAt": null,
		"cancelRequestedAt": null, "expiresAt": null, "orderingKey": "k", "fairnessKey": "f"`
	full := summary + `, "payload": null, "callbackUrl": null, "runAgainOf": null, "runAgainAs": ` + id + `, "parentId": null, "waits": [], "steps": [], "schedule": {"name": "a", "at": "2026-11-22T08:00:00Z"}, "after": [` + id + `], "onDependencyFailure": "run", "logs": [{"attempt": 1, "at": "2026-11-22T08:00:00Z", "level": "INFO", "text": ""}],
		"history": [{"at": "2026-11-22T08:00:00Z", "from": null, "to": "PENDING", "attempt": 0, "by": "ingest", "reason": null}],
		"attempts": [{"attempt": 1, "workerId": null, "startedAt": null, "finishedAt": null, "outcome": null,
		"errorCode": null, "message": null}]`
	for name, c := range map[string]struct {
		schema, body string
		good         bool
	}{
		"a job":                       {"Job", full + "}", true},
		"a job with an unknown field": {"Job", full + `, "x": 1}`, false},
		"a job without its history":   {"Job", summary + "}", false},
		"a page":                      {"JobPage", `{"nextCursor": null, "searchedTo": null, "jobs": [` + summary + "}]}", true},
		"a page with whole jobs":      {"JobPage", `{"nextCursor": null, "searchedTo": null, "jobs": [` + full + "}]}", false},
		"a refused job of a batch":    {"BatchResults", `{"results": [{"status": 400}]}`, false},
		"an accepted job of a batch":  {"BatchResults", `{"results": [{"status": 202, "jobId": ` + id + `}]}`, true},
		"an id in big letters":        {"EventAccepted", `{"jobId": ` + strings.ToUpper(id) + `}`, false},
		"a health check without database": {"Health", `{"status": "DOWN", "components": {"db": {"status": "DOWN"},
			"kafka": {"status": "UP"}, "job": {"status": "DOWN", "details": null}}}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var value any
			if err := json.Unmarshal([]byte(c.body), &value); err != nil {
				t.Fatal(err)
			}
			err := schemas[c.schema].Value.VisitJSON(value, openapi3.EnableJSONSchema2020(), openapi3.VisitAsResponse())
			if (err == nil) != c.good {
				t.Errorf("got %v", err)
			}
		})
	}
}
