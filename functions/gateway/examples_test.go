package gateway_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/jobweaver/jobweaver/functions/gateway"
	"github.com/jobweaver/jobweaver/shared/apidb/keystore"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// Every example of the contract works when it is copied.
func TestEveryExampleOfARequestIsAccepted(t *testing.T) {
	t.Parallel()
	tried := 0
	gateways := map[string]exampleGateway{} // by method: what a PUT has made, a POST may not make again
	for path, item := range loadContract(t).Paths.Map() {
		for method, op := range item.Operations() {
			if op.Description == "" {
				t.Errorf("%s %s has no description", method, path)
			}
			if op.RequestBody == nil {
				continue
			}
			g, opened := gateways[method]
			if !opened {
				g = openExampleGateway(t)
				gateways[method] = g
			}
			for _, c := range contents(op.RequestBody.Value.Content) {
				if len(c.Examples) == 0 {
					t.Errorf("%s %s has no example of %s", method, path, c.Type)
				}
				for _, e := range c.Examples {
					tried++
					g.tryExample(t, method, path, op, c.Type, e)
				}
			}
		}
	}
	if tried < 15 {
		t.Errorf("only %d examples were tried", tried)
	}
}

// Every response has an example, so that its form can be seen before the first request. TestTheContractIsValid checks
// each example against its schema.
func TestEveryResponseHasAnExample(t *testing.T) {
	t.Parallel()
	seen := 0
	for path, item := range loadContract(t).Paths.Map() {
		for method, op := range item.Operations() {
			for status, answer := range op.Responses.Map() {
				body := answer.Value.Content["application/json"]
				if status >= "300" || body == nil || path == "/api/openapi.json" {
					continue
				}
				seen++
				if body.Example == nil && len(body.Examples) == 0 {
					t.Errorf("%s %s has no example of its answer %s", method, path, status)
				}
			}
		}
	}
	if seen < 50 {
		t.Errorf("only %d answers were looked at", seen)
	}
}

// exampleGateway is a gateway with all that the examples need, and the service that gives its jobs.
type exampleGateway struct {
	*fixture
	puller *puller
}

func openExampleGateway(t *testing.T) exampleGateway {
	t.Helper()
	const hooks = "hooks: [{name: github, signature: header, header: X-Token, secretFiles: [SECRET], job: {jobType: MAIL}}]"
	p := newPuller(t)
	return exampleGateway{puller: p, fixture: openWith(t, func(cfg *gateway.Config) {
		withHooks(t, hooks)(cfg)
		cfg.Pull.URLs, cfg.JobTypes = []string{p.URL}, []string{"*"}
	})}
}

// tryExample sends an example. Jobs with the ids in it exist.
func (h exampleGateway) tryExample(t *testing.T, method, path string, op *openapi3.Operation, contentType string, e example) {
	t.Helper()
	id := h.submit(plainJob)
	h.scheduler(id, 1, jobstate.Pending, nil)
	key := h.key(keystore.Key{Roles: []string{"read"}})
	name := "report.daily"
	if strings.HasPrefix(path, "/api/alerts") {
		name = "charges"
	}
	at := strings.NewReplacer("{jobId}", id.String(), "{kind}", "queue", "{queue}", "reports", "{name}", name, "{keyId}", key.ID(), "{type}", "shop.charge").Replace(path)
	if strings.Contains(path, "{flowId}") {
		made := h.flow(`{"jobs": {"charge": {"jobType": "MAIL", "payload": 1}}}`)
		h.scheduler(made.Jobs["charge"], 1, jobstate.Completed, nil)
		h.sweep()
		at = strings.ReplaceAll(at, "{flowId}", made.FlowID.String())
	}
	if strings.HasPrefix(path, "/api/controls/") {
		at = "/api/controls/queue/default"
	}
	if strings.HasPrefix(path, "/hooks/") {
		at = "/hooks/github"
	}
	body := e.JSON
	if path == "/api/workers/wait" || strings.HasPrefix(path, "/api/workers/steps") { // its token is of an instance
		h.puller.giveOf(id, id.String()+".1.x")
		body = regexp.MustCompile(`"token": *"[^"]*"`).ReplaceAllString(body, `"token": "`+h.claimed()[0]+`"`)
	}
	for _, unknown := range []string{"01936f3e-5f3e-7cc0-8000-0123456789ab", "019aa5d0-8f5e-7cc0-8000-000000000001"} {
		body = strings.ReplaceAll(body, unknown, id.String())
	}
	headers := []string{"Content-Type", contentType, "X-Callback-Secret", globalSecret, "X-Token", hookSecret}
	if contentType == "*/*" { // binary mode
		headers = []string{"Content-Type", "application/json", "Ce-Specversion", "1.0", "Ce-Id", "1", "Ce-Source", "/t", "Ce-Type", submitType}
	}
	r := h.do(method, at, body, headers...)
	if r.status >= http.StatusMultipleChoices || op.Responses.Status(r.status) == nil {
		t.Errorf("%s %s, %s: answered %d %s", method, path, e.Name, r.status, r.body)
	}
}
