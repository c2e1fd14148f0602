package handlers_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/jobweaver/jobweaver/functions/runjob/handlers"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/outbound"
	"github.com/jobweaver/jobweaver/shared/payloadschema"
	"github.com/jobweaver/jobweaver/shared/secret"
	"github.com/jobweaver/jobweaver/shared/webhook"
)

const (
	signing     = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	older       = "whsec_b2xkZXIgc2VjcmV0IG9mIDI0IGJ5dGVz"
	answering   = "whsec_Q2FsbGJhY2sgc2VjcmV0IG9mIDI0IGJ5dGVz"
	callbackURL = "https://jobs.example.org/api/jobs/callback"
)

// callConfig returns settings with which calls may reach this machine, and with callbacks.
func callConfig() handlers.Config {
	var cfg handlers.Config
	cfg.Outbound.Allow = []string{"127.0.0.0/8", "::1"}
	cfg.Webhook.Secrets = secret.AllOf(signing, older)
	cfg.Callback.Secrets = secret.AllOf(answering)
	cfg.Calls.CallbackURL = callbackURL
	return cfg
}

// calls runs attempts of a job type as a worker does, until the test ends.
type calls struct {
	*testing.T
	cfg     handlers.Config
	handler handlers.Handler
}

func newCalls(t *testing.T, jobType string, cfg handlers.Config) calls {
	t.Helper()
	registry, err := handlers.Builtin(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(registry.Close)
	return calls{t, cfg, registry.Find(jobType)}
}

// newBare is newCalls without the registry's check of the payload.
func newBare(t *testing.T, jobType string) calls {
	t.Helper()
	cfg := callConfig()
	client, err := outbound.New(cfg.Outbound)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	caller, err := handlers.NewCaller(client, cfg.Webhook, cfg.Callback, cfg.Calls)
	if err != nil {
		t.Fatal(err)
	}
	if jobType == jobspec.External {
		return calls{t, cfg, handlers.NewExternal(caller).Run}
	}
	return calls{t, cfg, handlers.NewFunction(caller).Run}
}

func newAttempt(number int, payload string) *handlers.Attempt {
	run := jobevent.Run{JobID: uuid.New(), OwnerID: "acme", Attempt: number, Payload: json.RawMessage(payload)}
	return handlers.NewAttempt(run, uuid.New(), func(slog.Level, string) {}, func(jobevent.Progress) {})
}

func (c calls) run(payload string) (handlers.Result, error) {
	return c.handler(c.Context(), newAttempt(1, payload))
}

// failure returns the failure of an attempt that must fail.
func (c calls) failure(payload string) *handlers.Failure {
	c.Helper()
	result, err := c.run(payload)
	return asFailure(c.T, result, err)
}

func asFailure(t *testing.T, result handlers.Result, err error) *handlers.Failure {
	t.Helper()
	var failure *handlers.Failure
	if !errors.As(err, &failure) {
		t.Fatalf("ended with %+v, %v", result, err)
	}
	return failure
}

// receiver is an outside system that keeps the requests that it receives.
type receiver struct {
	*httptest.Server
	mu    sync.Mutex
	calls []received
}

type received struct {
	*http.Request
	body []byte
}

func newReceiver(t *testing.T, answer http.HandlerFunc) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		if err != nil {
			t.Errorf("read request: %v", err)
		}
		r.mu.Lock()
		r.calls = append(r.calls, received{q, body})
		r.mu.Unlock()
		answer(w, q)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) only(t *testing.T) received {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.calls) != 1 {
		t.Fatalf("called %d times", len(r.calls))
	}
	return r.calls[0]
}

func callKeys(t *testing.T, owner string) []string {
	t.Helper()
	keys, err := webhook.NewOutgoing(callConfig().Webhook, webhook.Call)
	if err != nil {
		t.Fatal(err)
	}
	return keys.Secrets(owner)
}

// wantSigned checks the headers that both job types set on a request.
func (r received) wantSigned(t *testing.T, a *handlers.Attempt, wait time.Duration) {
	t.Helper()
	for _, secret := range callKeys(t, a.OwnerID) {
		w, err := standardwebhooks.NewWebhook(secret)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Verify(r.body, r.Header); err != nil {
			t.Errorf("signature: %v", err)
		}
	}
	keys, err := webhook.NewCallbackKeys([]string{answering})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"webhook-id": a.Token, "X-Trace-Id": a.TraceID.String(), "X-Callback-Url": callbackURL,
		"X-Callback-Secret": keys.Secret(a.Token), "Traceparent": jobevent.TraceParent(a.TraceID, a.Token, jobevent.Sampled(a.JobID)),
	}
	got := map[string]string{}
	for name := range want {
		got[name] = strings.Join(r.Header.Values(name), ", ")
	}
	if r.Method != http.MethodPost || !maps.Equal(got, want) {
		t.Errorf("%s with %v, not %v", r.Method, got, want)
	}
	deadline, err := time.Parse(time.RFC3339, r.Header.Get("X-Callback-Deadline"))
	if left := time.Until(deadline); err != nil || left > wait || left < wait-time.Minute {
		t.Errorf("deadline %s: %v", r.Header.Get("X-Callback-Deadline"), err)
	}
}

// hostile has all kinds of bad answers.
var hostile = map[string]struct {
	answer    http.HandlerFunc
	code      string
	message   string // a part of it
	retryable bool
	after     time.Duration
}{
	"400": {answerWith(400, "text/plain", "no such order"), "WORKER.CALL_FAILED", "answered 400 Bad Request: no such order", false, 0},
	"404": {answerWith(404, "", ""), "WORKER.CALL_FAILED", "answered 404 Not Found", false, 0},
	"409": {answerWith(409, "", ""), "WORKER.CALL_FAILED", "409", false, 0},
	"410": {answerWith(410, "", ""), "WORKER.CALL_FAILED", "410", false, 0},
	"408": {answerWith(408, "", ""), "WORKER.CALL_FAILED", "408", true, 0},
	"425": {answerWith(425, "", ""), "WORKER.CALL_FAILED", "425", true, 0},
	"429": {answerWith(429, "", "", "Retry-After", "7"), "WORKER.CALL_FAILED", "429", true, 7 * time.Second},
	"503": {answerWith(503, "", "", "Retry-After", "9"), "WORKER.CALL_FAILED", "503", true, 9 * time.Second},
	"503 and no more": {
		answerWith(503, "application/json", `{"retryable": false}`, "Retry-After", "9"), "WORKER.CALL_FAILED", "503", false, 0,
	},
	"500": {answerWith(500, "", "", "Retry-After", "7"), "WORKER.CALL_FAILED", "500", true, 0},
	"599": {answerWith(599, "", ""), "WORKER.CALL_FAILED", "answered 599", true, 0},
	"302": {answerWith(302, "", "", "Location", "/elsewhere"), "WORKER.CALL_FAILED", "answered 302 Found", false, 0},
	"304": {answerWith(304, "", ""), "WORKER.CALL_FAILED", "304", false, 0},
	"a full description": {
		answerWith(422, "application/json", `{"errorCode": "SHOP.CLOSED", "message": "until\u0007 eight\nor nine", "retryable": true}`),
		"SHOP.CLOSED", "until eight or nine", true, 0,
	},
	"a partial description": {answerWith(500, "", `{"retryable": false}`), "WORKER.CALL_FAILED", `500 Internal Server Error: {"retryable": false}`, false, 0},
	"an invalid description": {
		answerWith(400, "application/json", `{"errorCode": "A B", "message": 5, "retryable": "yes"}`), "WORKER.CALL_FAILED", "400", false, 0,
	},
	"control characters": {answerWith(400, "text/plain", "\x1b[31mred\x00\r\nX: y\u202e"), "WORKER.CALL_FAILED", "Request: [31mred X: y", false, 0},
	"no text":            {answerWith(500, "image/png", "\x89PNG\r\n\x1a\n\x00\xff"), "WORKER.CALL_FAILED", "answered 500 Internal Server Error", true, 0},
	"a lot":              {answerWith(500, "text/plain", strings.Repeat("ü", 1<<20)), "WORKER.CALL_FAILED", strings.Repeat("ü", 512), true, 0},
	"resets":             {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "WORKER.CALL_FAILED", "POST http://127", true, 0},
	"closes half way": {func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = w.Write([]byte("half"))
	}, "WORKER.CALL_FAILED", "POST http://127", true, 0},
	"speaks something else": {func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_, _ = conn.Write([]byte("SSH-2.0-OpenSSH\x1b[0m\r\n"))
			_ = conn.Close()
		}
	}, "WORKER.CALL_FAILED", "POST http://127", true, 0},
}

func answerWith(status int, contentType, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = nil // otherwise the server would guess one
		if contentType != "" {
			w.Header().Set("Content-Type", contentType)
		}
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func TestABadAnswerFailsTheCall(t *testing.T) {
	t.Parallel()
	for _, jobType := range []string{"EXTERNAL", "FUNCTION"} {
		c := newCalls(t, jobType, callConfig())
		for name, want := range hostile {
			t.Run(jobType+" "+name, func(t *testing.T) {
				t.Parallel()
				server := newReceiver(t, want.answer)
				result, err := c.handler(t.Context(), newAttempt(1, `{"url": "`+server.URL+`/a?token=hidden"}`))
				got := asFailure(t, result, err)
				if got.Code != want.code || got.Retryable != want.retryable || got.RetryAfter != want.after ||
					!strings.Contains(got.Message, want.message) || !got.Private {
					t.Errorf("failed with %+v", got)
				}
				if strings.Contains(got.Message, "hidden") || strings.ContainsAny(got.Message, "\x00\x1b\r\n") || len(got.Message) > 1200 {
					t.Errorf("returned %q", got.Message)
				}
				server.only(t)
			})
		}
	}
}

func TestACallEndsWithItsAttempt(t *testing.T) {
	t.Parallel()
	for _, jobType := range []string{"EXTERNAL", "FUNCTION"} {
		c := newCalls(t, jobType, callConfig())
		for name, answer := range map[string]http.HandlerFunc{
			"hangs": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
			"hangs half way": func(w http.ResponseWriter, r *http.Request) {
				_, _ = w.Write([]byte("half"))
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
			},
			"drips": func(w http.ResponseWriter, r *http.Request) {
				for r.Context().Err() == nil {
					_, _ = w.Write([]byte("."))
					_ = http.NewResponseController(w).Flush()
					<-time.After(time.Millisecond)
				}
			},
		} {
			t.Run(jobType+" "+name, func(t *testing.T) {
				t.Parallel()
				server := newReceiver(t, answer)
				for _, why := range []error{handlers.ErrTimeout, handlers.ErrCancelled, handlers.ErrStopping, handlers.ErrLost} {
					ctx, end := context.WithCancelCause(t.Context())
					timer := time.AfterFunc(50*time.Millisecond, func() { end(why) })
					_, err := c.handler(ctx, newAttempt(1, `{"url": "`+server.URL+`"}`))
					if !errors.Is(err, why) {
						t.Errorf("ended with %v, not %v", err, why)
					}
					timer.Stop()
					end(nil)
				}
			})
		}
	}
}

func TestForbiddenAddressesAreNotCalled(t *testing.T) {
	t.Parallel()
	server := newReceiver(t, answerWith(200, "", ""))
	port := server.URL[strings.LastIndex(server.URL, ":"):]
	cfg := callConfig()
	cfg.Outbound = outbound.Config{}
	for _, jobType := range []string{"EXTERNAL", "FUNCTION"} {
		c := newCalls(t, jobType, cfg)
		for _, host := range []string{"127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "10.0.0.1", "169.254.169.254"} {
			got := c.failure(`{"url": "http://` + host + port + `/"}`)
			if got.Code != "WORKER.CALL_REFUSED" || got.Retryable {
				t.Errorf("%s %s: %+v", jobType, host, got)
			}
		}
	}
	if len(server.calls) != 0 {
		t.Error("a private address was reached")
	}
	c := newCalls(t, "EXTERNAL", callConfig())
	if got := c.failure(`{"url": "http://127.0.0.1:1"}`); got.Code != "WORKER.CALL_FAILED" || !got.Retryable {
		t.Errorf("no server: %+v", got)
	}
}

func TestInvalidCallPayloadsAreRefused(t *testing.T) {
	t.Parallel()
	for _, jobType := range []string{"EXTERNAL", "FUNCTION"} {
		c, bare := newCalls(t, jobType, callConfig()), newBare(t, jobType)
		for _, payload := range []string{
			``, `null`, `7`, `[]`, `"x"`, `{}`, `{"url": 5}`, `{"url": ""}`, `{"url": "ftp://example.org"}`,
			`{"url": "http://u:p@example.org"}`, `{"url": "http://example.org/#f"}`, `{"url": "http://[::1"}`, `{"url": "//example.org"}`,
			`{"url": "http://example.org/ a\u0000"}`, `{"url": "http://example.org", "url": "http://example.org"}`,
			`{"url": "http://example.org", "more": 1}`, `{"url": "http://example.org"} {}`, "{\"url\": \"http://example.org/\xff\"}",
			`{"url": "http://example.org", "callbackTimeoutMs": 0}`, `{"url": "http://example.org", "callbackTimeoutMs": -1}`,
			`{"url": "http://example.org", "callbackTimeoutMs": 1.5}`, `{"url": "http://example.org", "callbackTimeoutMs": 31536000001}`,
			`{"url": "http://example.org", "callbackTimeoutMs": "1"}`, `{"url": "http://example.org", "callbackTimeoutMs": 1e300}`,
			`{"url": "http://example.org", "headers": {"Host": "a"}}`, `{"url": "http://example.org", "headers": {"content-length": "1"}}`,
			`{"url": "http://example.org", "headers": {"webhook-id": "1"}}`, `{"url": "http://example.org", "headers": {"Ce-Id": "1"}}`,
			`{"url": "http://example.org", "headers": {"X-Callback-Secret": "1"}}`, `{"url": "http://example.org", "headers": {"a b": "1"}}`,
			`{"url": "http://example.org", "headers": {"A": "1\r\nB: 2"}}`, `{"url": "http://example.org", "headers": {"A": 1}}`,
			`{"url": "http://example.org", "headers": {"": "1"}}`, `{"url": "http://example.org", "headers": {"X-A": "1", "x-a": "2"}}`,
		} {
			for _, got := range []*handlers.Failure{c.failure(payload), bare.failure(payload)} {
				if got.Code != "WORKER.INVALID_PAYLOAD" || got.Retryable {
					t.Errorf("%s %s: %+v", jobType, payload, got)
				}
			}
		}
	}
	if got := newBare(t, "EXTERNAL").failure(`{"url": "http://example.org", "type": "a"}`); got.Code != "WORKER.INVALID_PAYLOAD" {
		t.Errorf("a type of EXTERNAL: %+v", got)
	}
	for _, typ := range []string{`""`, `"a b"`, `"a%20"`, `"ü"`, `5`, `"` + strings.Repeat("a", 256) + `"`} {
		got := newBare(t, "FUNCTION").failure(`{"url": "http://example.org", "type": ` + typ + `}`)
		if got.Code != "WORKER.INVALID_PAYLOAD" {
			t.Errorf("type %s: %+v", typ, got)
		}
	}
}

// The worker accepts every payload that the gateway accepts. The schema refuses each reserved header, so that a form
// can show it.
func TestTheSchemasAcceptWhatTheHandlersAccept(t *testing.T) {
	t.Parallel()
	for _, jobType := range []string{"EXTERNAL", "FUNCTION"} {
		schema, err := payloadschema.Compile(jobspec.PayloadSchema(jobType))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{
			"Host", "content-length", "Content-Type", "CONTENT_TYPE", "content-encoding", "Transfer-Encoding", "connection", "keep-alive",
			"upgrade", "TE", "trailer", "expect", "http2-settings", "date", "traceparent", "TraceState", "X-Trace-Id", "x_trace_id",
			"Proxy-Authorization", "Knative-Serving-Revision", "knative_serving_namespace", "ce-id", "ce_id", "Webhook-Signature", "X-Callback-Url", "a b", "", "é", strings.Repeat("a", 101),
			"Authorization", "X-Api-Key", "Accept", "User-Agent", "Hosts", "X-Content-Type", "Cex", "Cookie", strings.Repeat("a", 100),
		} {
			for _, value := range []string{"", "a b", "a\tb", "a\nb", "é", strings.Repeat("a", 4096), strings.Repeat("a", 4097)} {
				payload, err := json.Marshal(map[string]any{"url": "http://example.org", "headers": map[string]string{name: value}})
				if err != nil {
					t.Fatal(err)
				}
				if bySchema, byHandler := schema.Check(payload), outbound.CheckHeader(name, value); (bySchema == nil) != (byHandler == nil) {
					t.Errorf("%s header %.20q: %.20q: the schema returned %v, the handler %v", jobType, name, value, bySchema, byHandler)
				}
			}
		}
	}
}

func TestABadCallSettingIsNamed(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*handlers.Config){
		"CALLBACK_URL":     func(c *handlers.Config) { c.Calls.CallbackURL = "jobs.example.org" },
		"WEBHOOK_SECRETS":  func(c *handlers.Config) { c.Webhook.Secrets = secret.AllOf("short") },
		"CALLBACK_SECRETS": func(c *handlers.Config) { c.Callback.Secrets = secret.AllOf("short") },
		"OUTBOUND_ALLOW":   func(c *handlers.Config) { c.Outbound.Allow = []string{"here"} },
	} {
		cfg := callConfig()
		spoil(&cfg)
		if _, err := handlers.Builtin(cfg); err == nil || !strings.HasPrefix(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A client chooses the whole signed request of a FUNCTION: it must not verify as a callback of any job.
func TestASecretForCallsIsRefusedForCallbacks(t *testing.T) {
	t.Parallel()
	cfg := callConfig()
	cfg.Callback.Secrets = secret.AllOf(answering, " "+older)
	_, err := handlers.Builtin(cfg)
	if err == nil || !strings.HasPrefix(err.Error(), "CALLBACK_SECRETS: ") || strings.Contains(err.Error(), "whsec_") {
		t.Error(err)
	}
}

func FuzzCallPayload(f *testing.F) {
	schema, err := payloadschema.Compile(jobspec.PayloadSchema(jobspec.FunctionCall))
	if err != nil {
		f.Fatal(err)
	}
	for _, payload := range []string{
		`{"url": "http://example.org"}`, `{"url": "https://example.org:8080/a?b=c", "data": null, "type": "a", "callbackTimeoutMs": 1e3}`,
		`{"url": "http://[::1]/", "data": {"a": [1]}, "headers": {"Authorization": "Bearer a", "X-A": ""}, "callbackTimeoutMs": 31536000000}`,
		`{"url": "http://example.org/\u0000", "headers": {"X_A": "é"}}`, `{"url": null}`, `[]`,
	} {
		f.Add([]byte(payload))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		url, headers, wait, wrong := handlers.ReadCall(payload)
		if wrong != nil {
			// A payload that the gateway accepts can only have a bad URL or a duplicate name, which no schema can express.
			request := append(append([]byte(`{"jobType": "FUNCTION", "payload": `), payload...), '}')
			if _, err := jobspec.Decode(request); err == nil && schema.Check(payload) == nil &&
				!strings.HasPrefix(wrong.Message, "payload.url: ") && !strings.Contains(wrong.Message, " twice") {
				t.Errorf("the gateway takes %q, and a worker returned %s", payload, wrong.Message)
			}
			return
		}
		if err := outbound.CheckURL(url); err != nil || wait < time.Millisecond || wait > 365*24*time.Hour {
			t.Errorf("%q: %v, waits %s", payload, err, wait)
		}
		if _, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, nil); err != nil {
			t.Errorf("%q: %v", payload, err)
		}
		for name, value := range headers {
			if err := outbound.CheckHeader(name, value); err != nil {
				t.Errorf("%q: %v", payload, err)
			}
		}
	})
}
