package gateway_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway"
)

const hookSecret = "a secret that only the sender has"

// withHooks gives a gateway a file of hooks, in which SECRET is replaced by the path of hookSecret.
func withHooks(t *testing.T, text string) func(*gateway.Config) {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"secret": hookSecret, "hooks.yaml": strings.ReplaceAll(text, "SECRET", filepath.Join(dir, "secret")),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return func(cfg *gateway.Config) { cfg.HooksFile = filepath.Join(dir, "hooks.yaml") }
}

const twoHooks = `hooks:
- name: pushes
  owner: shop
  signature: github
  secretFiles: [SECRET]
  job: {jobType: MAIL, queue: mail, orderingKey: {$path: $.repository}, payload: {to: {$path: $.who}}}
- name: tokens
  signature: header
  header: X-Token
  secretFiles: [SECRET]
  job: {jobType: {$header: X-Kind}}
`

// push sends a body as GitHub signs it.
func (c *client) push(body string, headers ...string) *response {
	c.t.Helper()
	m := hmac.New(sha256.New, []byte(hookSecret))
	m.Write([]byte(body))
	signature := "sha256=" + hex.EncodeToString(m.Sum(nil))
	return c.post("/hooks/pushes", body, append([]string{"X-Hub-Signature-256", signature}, headers...)...)
}

type hooksBody struct {
	Hooks []struct {
		Name                         string
		OwnerID, JobType             *string
		Signature                    string
		Accepted, Replayed, Rejected int
		LastRejection                *struct{ Message string }
	}
}

func TestSignedRequestBecomesOneJobOfTheHooksOwner(t *testing.T) {
	t.Parallel()
	h := openWith(t, func(cfg *gateway.Config) {
		cfg.Auth = gateway.AuthOn
		withHooks(t, twoHooks)(cfg)
	})
	const body = `{"repository": "a/b", "who": "ada@example.org"}`
	first := h.push(body)
	first.want(http.StatusAccepted)
	again := h.push(body)
	again.want(http.StatusOK)
	if again.jobID() != first.jobID() || h.rows() != 1 {
		t.Errorf("the same message is %s, then %s; %d jobs", first.jobID(), again.jobID(), h.rows())
	}
	var job struct {
		OwnerID, OrderingKey, Queue string
		Payload                     struct{ To string }
	}
	h.as("shop", "read").get("/api/jobs/" + first.jobID().String()).into(&job)
	if job.OwnerID != "shop" || job.OrderingKey != "a/b" || job.Queue != "mail" || job.Payload.To != "ada@example.org" {
		t.Errorf("the job is %+v", job)
	}
	h.as("other", "read").get("/api/jobs/" + first.jobID().String()).want(http.StatusNotFound)
	if entries := h.as("shop", "admin").log("action=hook.submit"); len(entries) != 1 || entries[0].Actor != "hook:pushes" {
		t.Errorf("the audit log has %+v", entries)
	}
	ping := h.push(`{"zen": "…"}`, "X-GitHub-Event", "ping")
	if ping.want(http.StatusOK); h.rows() != 1 {
		t.Error("a ping became a job")
	}
}

func TestHookRefusesRequestsNotSignedByItsSecret(t *testing.T) {
	t.Parallel()
	h := openWith(t, func(cfg *gateway.Config) {
		cfg.Auth = gateway.AuthOn
		cfg.Limits.AuthFailureLimit = 6
		withHooks(t, twoHooks)(cfg)
	})
	const body = `{"repository": "a/b", "who": "x"}`
	signed := hmac.New(sha256.New, []byte(hookSecret))
	signed.Write([]byte(body + " "))
	for what, headers := range map[string][]string{
		"nothing": nil, "another body": {"X-Hub-Signature-256", "sha256=" + hex.EncodeToString(signed.Sum(nil))},
		"a key":                   {"Authorization", "Bearer " + h.as("shop", "admin").key},
		"another scheme's secret": {"X-Token", hookSecret},
	} {
		if r := h.post("/hooks/pushes", body, headers...); r.status != http.StatusUnauthorized {
			t.Errorf("%s: %d", what, r.status)
		}
	}
	wrong := h.post("/hooks/tokens", body, "X-Token", "wrong")
	unknown := h.post("/hooks/nowhere", body, "X-Token", "wrong")
	if wrong.status != http.StatusUnauthorized || unknown.status != wrong.status || unknown.error().Message != wrong.error().Message {
		t.Errorf("a wrong signature gets %s, an unknown name %s", wrong.body, unknown.body)
	}
	for _, name := range []string{"tokens", "nowhere"} { // both of these names have used up the limit
		h.post("/hooks/"+name, body, "X-Token", "guess").want(http.StatusTooManyRequests)
	}
	h.push(body).want(http.StatusAccepted) // a valid signature is accepted however many wrong ones the address has sent
	if h.rows() != 1 {
		t.Errorf("%d jobs", h.rows())
	}
}

func TestInvalidRequestToAHookIsRefusedAndCounted(t *testing.T) {
	t.Parallel()
	h := openWith(t, func(cfg *gateway.Config) {
		cfg.Auth = gateway.AuthOn
		withHooks(t, twoHooks)(cfg)
	})
	token := []string{"X-Token", hookSecret}
	for body, want := range map[string]string{
		`{"who": "x"}`: "the body has nothing at $.repository", `[`: "the body is not one JSON value", `{"repository": 5, "who": 1}`: "orderingKey",
	} {
		if r := h.push(body); r.status != http.StatusBadRequest || !strings.Contains(string(r.body), want) {
			t.Errorf("%s: %d %s", body, r.status, r.body)
		}
	}
	h.post("/hooks/tokens", `{}`, append(token, "X-Kind", "NONE")...).want(http.StatusBadRequest) // no such job type
	h.post("/hooks/tokens", `{}`, append(token, "X-Kind", "MAIL")...).want(http.StatusAccepted)
	h.post("/hooks/tokens", `x=1`, append(token, "Content-Type", "text/plain")...).want(http.StatusUnsupportedMediaType)

	var own, all, none hooksBody
	h.as("shop", "read").get("/api/hooks").into(&own)
	h.as("", "admin").get("/api/hooks").into(&all)
	h.as("other", "read").get("/api/hooks").into(&none)
	if len(own.Hooks) != 1 || len(all.Hooks) != 2 || len(none.Hooks) != 0 {
		t.Fatalf("shop sees %+v, the installation %+v, another owner %+v", own.Hooks, all.Hooks, none.Hooks)
	}
	pushes, tokens := own.Hooks[0], all.Hooks[1]
	if pushes.Name != "pushes" || *pushes.JobType != "MAIL" || *pushes.OwnerID != "shop" || pushes.Rejected != 3 || pushes.LastRejection == nil {
		t.Errorf("pushes is %+v", pushes)
	}
	if tokens.Name != "tokens" || tokens.JobType != nil || tokens.OwnerID != nil || tokens.Accepted != 1 || tokens.Rejected != 2 {
		t.Errorf("tokens is %+v", tokens)
	}
	var owner *string
	h.sql("select owner_id from jobs", &owner)
	if owner != nil && *owner != "" {
		t.Errorf("a job of no owner is %s's", *owner)
	}
}

// Stripe counts its tries in the event.
func TestMessageWithChangedContentIsTheSameMessage(t *testing.T) {
	t.Parallel()
	h := openWith(t, withHooks(t, `hooks:
- {name: tokens, signature: header, header: X-Token, secretFiles: [SECRET], job: {jobType: MAIL, idempotencyKey: {$path: $.id}}}
`))
	var ids []uuid.UUID
	for _, body := range []string{`{"id":"evt_1","try":1}`, `{"id":"evt_1","try":2}`} {
		ids = append(ids, h.post("/hooks/tokens", body, "X-Token", hookSecret).jobID())
	}
	if ids[0] != ids[1] || h.rows() != 1 {
		t.Errorf("the jobs are %v", ids)
	}
}

func TestEachRequestIsAJobIfTheHookWantsNoKey(t *testing.T) {
	t.Parallel()
	h := openWith(t, withHooks(t, `hooks:
- {name: alerts, signature: header, header: X-Token, secretFiles: [SECRET], job: {jobType: MAIL, idempotencyKey: null}}
`))
	for range 2 {
		h.post("/hooks/alerts", `{"alert": "disk full"}`, "X-Token", hookSecret).want(http.StatusAccepted)
	}
	if h.rows() != 2 {
		t.Errorf("%d jobs", h.rows())
	}
}

func TestHooksAreReadAtTheStart(t *testing.T) {
	t.Parallel()
	_, err := gateway.New(gateway.Config{HooksFile: filepath.Join(t.TempDir(), "none")}, nil)
	if err == nil || !strings.Contains(err.Error(), "HOOKS_FILE") {
		t.Errorf("without the file: %v", err)
	}
}

// GitHub sends forms unless its user changes that, and the commands and buttons of Slack are always forms.
func TestAFormBecomesAJob(t *testing.T) {
	t.Parallel()
	h := openWith(t, withHooks(t, twoHooks+`- {name: all, signature: header, header: X-Token, secretFiles: [SECRET], job: {jobType: MAIL}}
`))
	for _, contentType := range []string{"application/x-www-form-urlencoded", "application/x-www-form-urlencoded; charset=UTF-8"} {
		form := url.Values{"payload": {`{"repository": "a/b", "who": "ada@example.org", "n": 12345678901234567890}`}}.Encode()
		r := h.push(form, "Content-Type", contentType)
		if r.status != http.StatusAccepted && r.status != http.StatusOK {
			t.Errorf("%s: %d %s", contentType, r.status, r.body)
		}
	}
	if h.rows() != 1 {
		t.Errorf("%d jobs", h.rows())
	}
	for form, want := range map[string]string{
		"command=%2Fdeploy&text=now+here&channel=x&channel=y": `{"channel":["x","y"],"command":"/deploy","text":"now here"}`,
		"payload=%7B%22type%22%3A%22block_actions%22%7D":      `{"type":"block_actions"}`,
		"payload=text&other=1":                                `{"other":"1","payload":"text"}`,
	} {
		r := h.post("/hooks/all", form, "X-Token", hookSecret, "Content-Type", "application/x-www-form-urlencoded")
		r.want(http.StatusAccepted)
		var job struct{ Payload json.RawMessage }
		h.get("/api/jobs/" + r.jobID().String()).into(&job)
		if string(job.Payload) != want {
			t.Errorf("%s became %s", form, job.Payload)
		}
	}
}

func TestEveryRefusalOfAHookIsCountedWithItsReason(t *testing.T) {
	t.Parallel()
	h := openWith(t, func(cfg *gateway.Config) {
		withHooks(t, "\ufeff"+twoHooks)(cfg) // as some editors of Windows write a file
	})
	form := "application/x-www-form-urlencoded"
	for i, c := range []struct {
		body, contentType string
		status            int
		reason            string
	}{
		{`{}`, "text/xml", http.StatusUnsupportedMediaType, "text/xml"},
		{`{}`, "application/json; charset=latin1", http.StatusUnsupportedMediaType, "UTF-8"},
		{strings.Repeat(" ", 600<<10), "application/json", http.StatusRequestEntityTooLarge, "at most"},
		{`{"repository": "a/b", "who": "x"}}}}`, "application/json", http.StatusBadRequest, "one JSON value"},
		{"payload=%zz", form, http.StatusBadRequest, "not a form"},
		{"a=%ff&b=", form, http.StatusBadRequest, "UTF-8"},
		{"payload=%5B", form, http.StatusBadRequest, "JSON"},
	} {
		h.push(c.body, "Content-Type", c.contentType).want(c.status)
		var list hooksBody
		h.as("", "admin").get("/api/hooks").into(&list)
		if got := list.Hooks[0]; got.Rejected != i+1 || !strings.Contains(got.LastRejection.Message, c.reason) {
			t.Errorf("after %s %.40s: %d refusals, the last one %+v", c.contentType, c.body, got.Rejected, got.LastRejection)
		}
	}
}
