package gateway_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway"
)

// things are the resources of an owner, whose names another owner may guess.
type things struct {
	owner, job, dead, op, batch, flow, schedule, tag, key, orderingKey, jobType, event, keyID string
}

// guessed returns resources that do not exist.
func guessed() things {
	return things{
		owner: "umbrella", job: uuid.NewString(), dead: uuid.NewString(), op: uuid.NewString(), schedule: "nightly-umbrella",
		batch: uuid.NewString(), flow: uuid.NewString(), tag: "umbrella-tag", key: "umbrella-key", orderingKey: "umbrella-order", jobType: "UMBRELLA_TYPE", event: "umbrella-event",
		keyID: "aaaabbbbcccc",
	}
}

// ask is a request that names resources.
type ask struct {
	method, path, body string
	headers            []string
	alike              bool // resources of another owner get the same response as missing ones; else the response is only searched for secrets
}

// bodies returns the bodies for each endpoint; an endpoint without a body is listed with nil. An endpoint that is not
// listed fails the test: add it here with the requests that could reveal another owner's resources.
var bodies = map[string]func(things) []string{
	"submitJob": func(x things) []string {
		return []string{
			fmt.Sprintf(`{"jobType": "OWN", "payload": 1, "ownerId": %q, "idempotencyKey": %q}`, x.owner, x.key),
			fmt.Sprintf(`{"jobType": "OWN", "payload": 1, "ownerId": %q, "after": [%q]}`, x.owner, x.job),
			fmt.Sprintf(`{"jobType": "OWN", "payload": 1, "orderingKey": %q, "tags": [%q]}`, x.orderingKey, x.tag),
			fmt.Sprintf(`{"jobType": "OWN", "payload": 1, "batchId": %q}`, x.batch),
		}
	},
	"submitJobs": func(x things) []string {
		return []string{fmt.Sprintf(`{"jobs": [{"jobType": "OWN", "payload": 2, "ownerId": %q, "idempotencyKey": %q},
			{"jobType": "OWN", "payload": 2, "after": [%q]}]}`, x.owner, x.key+"-batch", x.dead)}
	},
	"receiveEvent": func(x things) []string {
		job := fmt.Sprintf(`{"jobType": "OWN", "payload": 1, "ownerId": %q}`, x.owner)
		return []string{envelope(x.event, submitType, job), `[` + envelope(x.event, submitType, job) + `]`}
	},
	"startOperation": func(x things) []string {
		return []string{
			fmt.Sprintf(`{"command": "cancel", "jobIds": [%q, %q], "idempotencyKey": %q}`, x.job, x.dead, x.key),
			fmt.Sprintf(`{"command": "delete", "filter": {"ownerId": %q}}`, x.owner),
			fmt.Sprintf(`{"command": "retry", "filter": {"tag": %q}}`, x.tag),
			fmt.Sprintf(`{"command": "retry", "filter": {"idempotencyKey": %q}}`, x.key),
			fmt.Sprintf(`{"command": "cancel", "filter": {"batchId": %q}}`, x.batch),
			fmt.Sprintf(`{"command": "cancel", "filter": {"fanOutId": %q}}`, x.job),
			fmt.Sprintf(`{"command": "cancel", "filter": {"payload": %q}}`, "of:canary-of-"+x.owner),
		}
	},
	"createBatch": func(x things) []string {
		return []string{
			fmt.Sprintf(`{"ownerId": %q, "idempotencyKey": %q}`, x.owner, x.key),
			fmt.Sprintf(`{"jobs": [{"jobType": "OWN", "payload": 1, "after": [%q]}]}`, x.job),
		}
	},
	"createFlow": func(x things) []string {
		return []string{
			fmt.Sprintf(`{"ownerId": %q, "idempotencyKey": %q, "jobs": {"a": {"jobType": "OWN", "payload": 1}}}`, x.owner, x.key),
			fmt.Sprintf(`{"jobs": {"a": {"jobType": "OWN", "payload": {"$output": %[1]q}, "after": [{"jobId": %[1]q}]}}}`, x.job),
		}
	},
	"retryFlow":     func(things) []string { return []string{`{}`, `{"all": true}`, `{"from": ["a"]}`} },
	"rescheduleJob": func(things) []string { return []string{`{"delayMs": 5}`} },
	"changeJob":     func(things) []string { return []string{`{"priority": 1}`, `{"payload": {"a": null}}`} },
	"runJobAgain": func(x things) []string {
		return []string{fmt.Sprintf(`{"ownerId": %q, "idempotencyKey": %q}`, x.owner, x.key), `{"priority": 1}`}
	},
	"callback": func(x things) []string {
		return []string{fmt.Sprintf(`{"jobId": %q, "attempt": 1, "status": "COMPLETED"}`, x.job)}
	},
	"claimAttempts": func(x things) []string {
		return []string{fmt.Sprintf(`{"worker": "w", "types": [%q], "wait": "1ms"}`, x.jobType)}
	},
	"keepAttempts": func(x things) []string {
		return []string{fmt.Sprintf(`{"worker": "w", "attempts": [{"token": "%s.1"}]}`, x.job)}
	},
	"saveCheckpoints": func(x things) []string {
		return []string{fmt.Sprintf(`{"worker": "w", "checkpoints": [{"token": "%s.1", "number": 1, "checkpoint": 1}]}`, x.job)}
	},
	"waitInAttempt": func(x things) []string {
		return []string{fmt.Sprintf(`{"worker": "w", "token": "0000000000.%s.1.x", "waits": [{"name": "a", "event": {"type": "a"}}]}`, x.job)}
	},
	"saveStep": func(x things) []string {
		return []string{fmt.Sprintf(`{"worker": "w", "token": "0000000000.%s.1.x", "name": "a", "result": 1}`, x.job)}
	},
	"readSteps": func(x things) []string {
		return []string{fmt.Sprintf(`{"worker": "w", "token": "0000000000.%s.1.x"}`, x.job)}
	},
	"settleAttempts": func(x things) []string {
		return []string{fmt.Sprintf(`{"worker": "w", "results": [{"token": "%s.1", "status": "COMPLETED"}]}`, x.job)}
	},
	"receiveHook":    func(x things) []string { return []string{fmt.Sprintf(`{"ownerId": %q}`, x.owner)} },
	"createSchedule": func(x things) []string { return []string{scheduleBody(x, "@daily")} },
	"putSchedule":    func(x things) []string { return []string{scheduleBody(x, "@hourly")} },
	"createAlert":    func(x things) []string { return []string{alertBody(x, 1)} },
	"putAlert":       func(x things) []string { return []string{alertBody(x, 2)} },
	"putControl":     func(things) []string { return []string{`{"paused": true}`} },
	"putJobType":     func(things) []string { return []string{`{"title": "another"}`} },
	"defineSchedules": func(x things) []string {
		return []string{fmt.Sprintf(`{"schedules": [{"name": %q, "cron": "@daily", "job": {"jobType": %q, "payload": 1}}]}`, x.schedule, x.jobType)}
	},
	"createQueue": func(things) []string { return []string{`{"workers": "pull"}`} },
	"createKey": func(x things) []string {
		return []string{fmt.Sprintf(`{"name": "x", "roles": ["read"], "ownerId": %q}`, x.owner)}
	},
	"rotateKey": func(things) []string { return []string{`{"overlapSeconds": 5}`} },

	"listJobs": nil, "listDeadJobs": nil, "listDeadJobGroups": nil, "getJob": nil, "deleteJob": nil, "getLogs": nil, "cancelJob": nil, "retryJob": nil,
	"listJobDeliveries": nil, "retryDelivery": nil, "listDeliveries": nil, "listOperations": nil, "getOperation": nil,
	"listBatches": nil, "getBatch": nil, "closeBatch": nil, "cancelBatch": nil, "retryBatch": nil,
	"listFlows": nil, "getFlow": nil, "cancelFlow": nil,
	"abortOperation": nil, "listSchedules": nil, "getSchedule": nil, "deleteSchedule": nil, "pauseSchedule": nil,
	"resumeSchedule": nil, "runSchedule": nil, "listTicks": nil, "listScheduleTimes": nil, "listControls": nil, "listShares": nil, "listQueues": nil, "getQueue": nil, "removeQueue": nil, "getControl": nil, "deleteControl": nil,
	"listAlerts": nil, "getAlert": nil, "deleteAlert": nil, "pauseAlert": nil, "resumeAlert": nil, "testAlert": nil, "listNotices": nil,
	"pauseControl": nil, "resumeControl": nil, "streamChanges": nil, "listWorkers": nil, "drainWorker": nil, "undrainWorker": nil, "listJobTypes": nil, "getJobType": nil, "deleteJobType": nil, "getStats": nil,
	"getWebhookSecrets": nil, "getHealth": nil, "getContract": nil, "getContractAsJson": nil, "getReference": nil, "getHome": nil,
	"listKeys": nil, "getKey": nil, "revokeKey": nil, "getMe": nil, "listAudit": nil, "getLogin": nil,
	"getLag": nil, "listOwners": nil, "listHooks": nil, "listRejected": nil, "getRejected": nil, "redriveRejected": nil, "discardRejected": nil,
	"getLiveness": nil, "getReadiness": nil, "getMetrics": nil, // served by the host
}

func scheduleBody(x things, cron string) string {
	return fmt.Sprintf(`{"name": %q, "cron": %q, "job": {"jobType": "OWN", "payload": 1, "ownerId": %q}}`, x.schedule, cron, x.owner)
}

func alertBody(x things, failures int) string {
	return fmt.Sprintf(`{"name": %q, "failures": %d, "ownerId": %q, "jobType": %q, "to": {"email": ["a@example.org"]}}`,
		x.schedule, failures, x.owner, x.jobType)
}

// byHost are endpoints that only the host serves.
var byHost = []string{"getLiveness", "getReadiness"}

// asksOf returns requests to an endpoint about resources: each value of each parameter in its contract.
func asksOf(t *testing.T, path, method string, op *openapi3.Operation, params openapi3.Parameters, x things) (asks []ask) {
	t.Helper()
	bodiesOf, known := bodies[op.OperationID]
	if !known {
		t.Errorf("%s %s: add the endpoint to bodies", method, path)
		return nil
	}
	if (op.RequestBody != nil) != (bodiesOf != nil) {
		t.Errorf("%s: what body it takes is not known", op.OperationID)
	}
	kinds := []string{""}
	if strings.Contains(path, "{kind}") {
		kinds = []string{"owner", "type", "fairnessKey"}
	}
	for _, kind := range kinds {
		filled, alike := fill(t, path, kind, x)
		base := ask{method: method, path: filled, alike: alike, headers: []string{"Content-Type", "application/json"}}
		if bodiesOf == nil {
			asks = append(asks, base)
		} else {
			for _, body := range bodiesOf(x) {
				asks = append(asks, base.with(op.OperationID, body))
			}
		}
		for _, p := range params {
			if p.Value.In == "query" {
				asks = append(asks, base.asking(t, op.OperationID, p.Value.Name, x, bodiesOf)...)
			}
		}
	}
	return asks
}

func (a ask) with(endpoint, body string) ask {
	a.body, a.alike = body, true
	switch {
	case endpoint == "receiveEvent" && body[0] == '[':
		a.headers = []string{"Content-Type", batchType}
	case endpoint == "receiveEvent":
		a.headers = []string{"Content-Type", structuredType}
	case endpoint == "changeJob":
		a.headers = []string{"Content-Type", "application/merge-patch+json"}
	case endpoint == "callback":
		a.headers = append(slices.Clone(a.headers), "X-Callback-Secret", "guessed")
	}
	return a
}

// fill replaces the parameters of a path by the names of resources.
func fill(t *testing.T, path, kind string, x things) (filled string, about bool) {
	t.Helper()
	name := x.schedule
	switch kind {
	case "owner", "fairnessKey":
		name = x.owner
	case "type":
		name = x.jobType
	}
	filled = strings.NewReplacer("{jobId}", x.job, "{operationId}", x.op, "{batchId}", x.batch, "{flowId}", x.flow, "{version}", "3", "{kind}", kind, "{name}", name,
		"{type}", x.jobType, "{queue}", "default", "{keyId}", x.keyID, "{rejectedId}", x.op, "{workerId}", "worker-of-"+x.owner).Replace(path)
	if strings.Contains(filled, "{") {
		t.Errorf("%s: fill has no value for the parameter", path)
	}
	return filled, filled != path
}

// asking returns requests with one parameter of the query.
func (a ask) asking(t *testing.T, endpoint, name string, x things, bodies func(things) []string) (asks []ask) {
	t.Helper()
	values, known := map[string][]string{
		"status": {"FAILED", "COMPLETED", "PENDING"}, "queue": {"default"}, "since": {"2020-01-01T00:00:00Z"},
		"endedSince": {"2020-01-01T00:00:00Z"}, "endedUntil": {"2100-01-01T00:00:00Z"},
		"until": {"2100-01-01T00:00:00Z"}, "limit": {"200"}, "page": {"0"}, "size": {"200"}, "wait": {"10ms"}, "attempt": {"1"},
		"cursor": {x.job, x.dead, x.op, x.job + ".v9", x.schedule + ":" + x.owner, "2100-01-01T00:00:00Z"},
		"type":   {x.jobType}, "tag": {x.tag}, "orderingKey": {x.orderingKey}, "fairnessKey": {x.owner}, "ownerId": {x.owner}, "after": {x.job}, "batchId": {x.batch}, "fanOutId": {x.job}, "eventSource": {"/test"}, "eventId": {x.event},
		"traceId": {x.job}, "errorCode": {"DEMO"}, "noErrorCode": {"true"}, "payload": {"of:canary-of-" + x.owner}, "idempotencyKey": {x.key}, "q": {x.job, x.key, x.tag, "DEMO"},
		"jobType": {"OWN"}, "priority": nil, "maxRetryCount": nil, "timeoutMs": nil, "delayMs": nil, "runAt": nil, "tags": {x.tag},
		"jobId": {x.job}, "actor": {"key:" + x.keyID}, "action": {"job.submit"}, "expiresAt": nil, "onDependencyFailure": nil, "callbackUrl": nil, "keepBuild": nil,
		"function": {"ingest"}, "topic": {"job-created"}, "redriven": {"false"}, "state": {"FIRING"}, "drain": {"true"}, "cron": {"@daily"}, "timeZone": {"UTC"}, "startAt": {"2100-01-01T00:00:00Z"}, "endAt": {"2100-01-01T00:00:00Z"},
	}[name]
	if !known {
		t.Errorf("%s: what to ask by its parameter %s is not known", endpoint, name)
	}
	for _, value := range values {
		asked := a
		asked.path += "?" + name + "=" + url.QueryEscape(value)
		if slices.Contains([]string{"type", "tag", "orderingKey", "fairnessKey", "idempotencyKey", "ownerId", "after", "batchId", "fanOutId", "jobId", "actor", "payload", "q"}, name) {
			asked.alike = true
		}
		if bodies != nil {
			asked = asked.with(endpoint, bodies(x)[0])
		}
		if endpoint == "receiveEvent" {
			asked.path = "/events?jobType=OWN"
			if name != "jobType" {
				asked.path += "&" + name + "=" + url.QueryEscape(value)
			}
			asked.body = envelope(x.event+name, "io.example.other", "1")
		}
		asks = append(asks, asked)
	}
	return asks
}

// eachAsk calls visit with the requests to all endpoints about resources, always in the same order.
func eachAsk(t *testing.T, xs []things, visit func(endpoint string, asked []ask)) {
	t.Helper()
	paths := loadContract(t).Paths.Map()
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		operations := paths[path].Operations()
		for _, method := range slices.Sorted(maps.Keys(operations)) {
			op := operations[method]
			if slices.Contains(byHost, op.OperationID) {
				continue
			}
			var about [][]ask
			for _, x := range xs {
				params := append(slices.Clone(paths[path].Parameters), op.Parameters...)
				about = append(about, asksOf(t, path, method, op, params, x))
			}
			for i := range about[0] {
				var asked []ask
				for _, asks := range about {
					asked = append(asked, asks[i])
				}
				visit(op.OperationID, asked)
			}
		}
	}
}

var (
	anID      = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	anInstant = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
)

// plain returns a response without the parts that change each time, and without the names of resources.
func (r *response) plain(x things) string {
	text := fmt.Sprint(r.status, " ", r.header.Get("Location"), r.header.Get("Idempotent-Replayed"), " ", string(r.body))
	text = anInstant.ReplaceAllString(anID.ReplaceAllString(text, "<id>"), "<at>")
	return strings.NewReplacer(x.schedule, "<schedule>", x.tag, "<tag>", x.orderingKey, "<order>", x.key, "<key>",
		x.event, "<event>", x.jobType, "<type>", x.keyID, "<key id>", x.owner, "<owner>").Replace(text)
}

// Every request of an owner about another owner's resources is answered as if they did not exist, reveals nothing of
// them and changes nothing: at all endpoints of the contract, with guessed ids, and with filters, cursors and keys of
// the other owner.
func TestOwnersCannotSeeOrChangeEachOthersResources(t *testing.T) {
	t.Parallel()
	h := openWith(t, func(cfg *gateway.Config) { cfg.Auth, cfg.JobTypes = gateway.AuthOn, []string{"*"} })
	acme, none := h.furnish(t, "acme"), guessed()
	h.furnish(t, "zeta")
	secrets, before := h.secrets(acme), h.fingerprint("acme")
	for _, from := range []*client{h.as("zeta", "admin"), h.as("acm", "admin"), h.as("", "operate")} {
		sent := ""
		eachAsk(t, []things{acme, none}, func(endpoint string, asked []ask) {
			sent += asked[0].path + asked[0].body
			theirs, missing := asked[0].by(from), asked[1].by(from)
			for endpoint == "listShares" && countedAt(theirs) != countedAt(missing) { // by then, further jobs had come
				theirs, missing = asked[0].by(from), asked[1].by(from)
			}
			for _, secret := range secrets {
				known := asked[0].path + asked[0].body
				if endpoint == "listAudit" { // it shows the owner's own earlier requests
					known = sent
				}
				if strings.Contains(string(theirs.body), secret) && !strings.Contains(known, secret) {
					t.Errorf("%s %s %s reveals %s: %s", endpoint, asked[0].path, asked[0].body, secret, theirs.body)
				}
			}
			if got, want := theirs.plain(acme), missing.plain(none); asked[0].alike && got != want {
				t.Errorf("%s %s %s: for another owner's resources\n%s\nfor missing ones\n%s", endpoint, asked[0].path, asked[0].body, got, want)
			}
		})
		h.operateAll(t)
		if after := h.fingerprint("acme"); !maps.Equal(before, after) {
			t.Fatalf("what is acme's has changed:\n%v\nwas\n%v", after, before)
		}
	}
	h.wantSeen(t, h.as("acme", "read"), acme)
}

// Only an admin of the installation may act for an owner, at every endpoint that is not public.
func TestOnlyInstallationAdminsActForAnotherOwner(t *testing.T) {
	t.Parallel()
	h := openLocked(t)
	public := []string{"getHealth", "getContract", "getContractAsJson", "getReference", "getHome", "getLogin", "callback", "receiveHook"}
	for _, from := range []*client{h.as("zeta", "admin"), h.as("", "operate")} {
		asked := map[string]bool{}
		eachAsk(t, []things{guessed()}, func(endpoint string, asks []ask) {
			if asked[endpoint] || slices.Contains(public, endpoint) {
				return
			}
			asked[endpoint] = true
			if r := asks[0].by(from, "X-Owner-Id", "acme"); r.status != http.StatusForbidden {
				t.Errorf("%s %s for another is answered %d: %s", endpoint, asks[0].path, r.status, r.body)
			}
		})
	}
}

// by sends the request as a client.
func (a ask) by(from *client, headers ...string) *response {
	from.t.Helper()
	return from.do(a.method, a.path, a.body, append(headers, a.headers...)...)
}
