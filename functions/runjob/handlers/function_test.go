package handlers_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"github.com/cloudevents/sdk-go/v2/binding"
	"github.com/cloudevents/sdk-go/v2/event"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/jobweaver/jobweaver/functions/runjob/handlers"
	"github.com/jobweaver/jobweaver/shared/httpevent"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/payloadschema"
	"github.com/jobweaver/jobweaver/shared/webhook"
)

func TestAFunctionSendsAnEvent(t *testing.T) {
	t.Parallel()
	server := newReceiver(t, answerWith(204, "", ""))
	c := newCalls(t, "FUNCTION", callConfig())
	a := newAttempt(2, `{"url": "`+server.URL+`/f?x=1", "data": {"a": "<&>ü", "n": 12345678901234567890}, "type": "com.example.resize", "headers": {"Authorization": "Bearer x"}}`)
	result, err := c.handler(t.Context(), a)
	if err != nil || result.Output != nil || result.WaitFor != 0 {
		t.Fatalf("%+v, %v", result, err)
	}
	got := server.only(t)
	got.wantSigned(t, a, time.Hour)
	e, err := httpevent.Binary(got.Header, got.body)
	if err != nil {
		t.Fatal(err)
	}
	if e.ID() != a.Token || e.Type() != "com.example.resize" || e.Source() != "/jobweaver/runjob" || e.Subject() != a.JobID.String() ||
		e.DataContentType() != "application/json" || string(e.Data()) != `{"a":"<&>ü","n":12345678901234567890}` ||
		time.Since(e.Time()).Abs() > time.Minute {
		t.Errorf("sent %v", e)
	}
	for name, want := range map[string]string{
		"jobid": a.JobID.String(), "attempt": "2", "correlationid": a.TraceID.String(),
		"traceparent": jobevent.TraceParent(a.TraceID, a.Token, jobevent.Sampled(a.JobID)),
	} {
		if got := jobevent.Extension(e, name); got != want {
			t.Errorf("%s is %s, not %s", name, got, want)
		}
	}
	if got.URL.String() != "/f?x=1" || got.Header.Get("Authorization") != "Bearer x" || got.Header.Get("Ce-Datacontenttype") != "" {
		t.Errorf("%s with %v", got.URL, got.Header)
	}
}

func TestAFunctionWithoutDataSendsAnEventWithoutData(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ data, contentType, body string }{
		{``, "", ""},
		{`, "data": null`, "application/json", "null"},
		{`, "data": ""`, "application/json", `""`},
	} {
		server := newReceiver(t, answerWith(200, "", ""))
		if _, err := newCalls(t, "FUNCTION", callConfig()).run(`{"url": "` + server.URL + `"` + c.data + `}`); err != nil {
			t.Fatal(err)
		}
		got := server.only(t)
		e, err := httpevent.Binary(got.Header, got.body)
		if err != nil || string(got.body) != c.body || e.DataContentType() != c.contentType || e.Type() != handlers.TypeFunctionCall {
			t.Errorf("%s: %v, %v", c.data, e, err)
		}
	}
}

// A client chooses the body of a FUNCTION, and so could write a delivery about another owner's job: its signature must
// not verify as that of a delivery.
func TestAFunctionsRequestDoesNotVerifyAsAStatus(t *testing.T) {
	t.Parallel()
	const forged = `{"type":"io.jobweaver.job.status.v1","ownerId":"victim","jobId":"019aa5d0-8f5e-7cc0-8000-000000000001","version":99,"status":"COMPLETED"}`
	server := newReceiver(t, answerWith(200, "", ""))
	c := newCalls(t, "FUNCTION", callConfig())
	if _, err := c.run(`{"url": "` + server.URL + `", "type": "com.example.done", "data": ` + forged + `}`); err != nil {
		t.Fatal(err)
	}
	got := server.only(t)
	if string(got.body) != forged {
		t.Fatalf("sent %s", got.body)
	}
	ends, err := webhook.NewOutgoing(callConfig().Webhook, webhook.End)
	if err != nil {
		t.Fatal(err)
	}
	others := slices.Concat(ends.Secrets("victim"), ends.Secrets("acme"), ends.Secrets(""), callKeys(t, "victim"), callKeys(t, ""), []string{signing, older})
	for i, key := range others {
		if hook, err := standardwebhooks.NewWebhook(key); err != nil || hook.Verify(got.body, got.Header) == nil {
			t.Errorf("it verifies with key %d: %v", i, err)
		}
	}
	for _, typ := range []string{"io.jobweaver.job.status.v1", "IO.JobWeaver.job.completed.v1", "io.jobweaver.", "io.jobweaver.function.call.v1x"} {
		payload := fmt.Sprintf(`{"url": %q, "type": %q, "data": %s}`, server.URL, typ, forged)
		if f := c.failure(payload); f.Retryable || !strings.Contains(f.Message, "payload.type") {
			t.Errorf("%s: %+v", typ, f)
		}
		schema, err := payloadschema.Compile(jobspec.PayloadSchema(jobspec.FunctionCall))
		if err != nil || schema.Check(json.RawMessage(payload)) == nil {
			t.Errorf("a job is accepted that calls by %s: %v", typ, err)
		}
	}
	server.only(t)
}

const eventHeader = `Ce-Specversion: 1.0, Ce-Id: 1, Ce-Source: /f, Ce-Type: done`

// answers has good answers, by their content type, other headers and body.
var answers = map[string]struct {
	contentType, header, body string
	output                    string // or a failure's code
}{
	"JSON":                       {"application/json", "", ` {"a": [1, "ü"]} `, `{"a": [1, "ü"]}`},
	"JSON in other letters":      {"Application/JSON; charset=UTF-8", "", `true`, `true`},
	"JSON of a kind":             {"application/problem+json", "", `{}`, `{}`},
	"JSON's null":                {"application/json", "", `null`, `null`},
	"JSON that is called text":   {"text/plain", "", `{"a": 1}`, `"{\"a\": 1}"`},
	"JSON of no type":            {"", "", `{"a": 1}`, `{"a": 1}`},
	"text of no type":            {"", "", `a "b" <c>`, `"a \"b\" <c>"`},
	"text":                       {"text/plain; charset=utf-8", "", "grüße\n\x00", `"grüße\n\u0000"`},
	"XML":                        {"application/xml", "", "<a>1</a>", `"<a>1</a>"`},
	"text of a broken type":      {"text/;=", "", "a", `"a"`},
	"empty":                      {"", "", "", ""},
	"empty JSON":                 {"application/json", "", "", ""},
	"nothing but space":          {"application/json", "", " \n", ""},
	"broken JSON":                {"application/json", "", `{"a": `, "WORKER.INVALID_OUTPUT"},
	"two JSONs":                  {"application/json", "", `{} {}`, "WORKER.INVALID_OUTPUT"},
	"JSON that is no UTF-8":      {"application/json", "", "\"\xff\"", "WORKER.INVALID_OUTPUT"},
	"a picture":                  {"image/png", "", "\x89PNG\r\n\x1a\n", "WORKER.INVALID_OUTPUT"},
	"text that is no UTF-8":      {"text/plain; charset=iso-8859-1", "", "gr\xfc\xdfe", "WORKER.INVALID_OUTPUT"},
	"large":                      {"application/json", "", `"` + strings.Repeat("x", handlers.MaxOutput-2) + `"`, `"` + strings.Repeat("x", handlers.MaxOutput-2) + `"`},
	"too large":                  {"application/json", "", `"` + strings.Repeat("x", handlers.MaxOutput-1) + `"`, "WORKER.OUTPUT_TOO_LARGE"},
	"too large as a string":      {"text/plain", "", strings.Repeat(`"`, handlers.MaxOutput/2), "WORKER.OUTPUT_TOO_LARGE"},
	"far too large":              {"application/json", "", strings.Repeat("x", 2<<20), "WORKER.OUTPUT_TOO_LARGE"},
	"an event":                   {"application/json", eventHeader, `{"a": 1}`, `{"a": 1}`},
	"an event of text":           {"text/plain", eventHeader, `{"a": 1}`, `"{\"a\": 1}"`},
	"an event without data":      {"", eventHeader, ``, ""},
	"an event of broken JSON":    {"application/json", eventHeader, `{`, "WORKER.INVALID_OUTPUT"},
	"an event without a type":    {"application/json", `Ce-Specversion: 1.0, Ce-Id: 1, Ce-Source: /f`, `{"a": 1}`, "WORKER.INVALID_OUTPUT"},
	"an event of another day":    {"application/json", `Ce-Specversion: 0.3, Ce-Id: 1, Ce-Source: /f, Ce-Type: a`, `{}`, "WORKER.INVALID_OUTPUT"},
	"an event badly escaped":     {"application/json", eventHeader + `, Ce-Subject: %f`, `{}`, `{}`},
	"a header like an event's":   {"application/json", `Ce-Id: 1`, `{"a": 1}`, `{"a": 1}`},
	"an event in JSON":           {"application/cloudevents+json; charset=utf-8", "", structured(`"data": {"a": 1}`), `{"a": 1}`},
	"of text in JSON":            {"application/cloudevents+json", "", structured(`"datacontenttype": "text/plain", "data": "a"`), `"a"`},
	"of a string in JSON":        {"application/cloudevents+json", "", structured(`"data": "a"`), `"a"`},
	"of nothing in JSON":         {"application/cloudevents+json", "", structured(`"subject": "a"`), ""},
	"of null in JSON":            {"application/cloudevents+json", "", structured(`"data": null`), `null`},
	"of base64 in JSON":          {"application/cloudevents+json", "", structured(`"data_base64": "eyJhIjogMX0="`), `{"a": 1}`},
	"of a picture in JSON":       {"application/cloudevents+json", "", structured(`"datacontenttype": "image/png", "data_base64": "iVBO"`), "WORKER.INVALID_OUTPUT"},
	"of bad base64 in JSON":      {"application/cloudevents+json", "", structured(`"data_base64": "e"`), "WORKER.INVALID_OUTPUT"},
	"of both in JSON":            {"application/cloudevents+json", "", structured(`"data_base64": "eyJ9", "data": 1`), "WORKER.INVALID_OUTPUT"},
	"no event in JSON":           {"application/cloudevents+json", "", `{"a": 1}`, "WORKER.INVALID_OUTPUT"},
	"broken JSON for an event":   {"application/cloudevents+json", "", `{"a": `, "WORKER.INVALID_OUTPUT"},
	"a batch of events":          {"application/cloudevents-batch+json", "", `[]`, "WORKER.INVALID_OUTPUT"},
	"an event in another format": {"application/cloudevents+xml", "", `<event/>`, "WORKER.INVALID_OUTPUT"},
}

func structured(members string) string {
	return `{"specversion": "1.0", "id": "1", "source": "/f", "type": "done", ` + members + `}`
}

func TestAGoodAnswerIsTheOutput(t *testing.T) {
	t.Parallel()
	c := newCalls(t, "FUNCTION", callConfig())
	for name, want := range answers {
		for _, status := range []int{200, 201, 203} {
			t.Run(fmt.Sprint(name, status), func(t *testing.T) {
				t.Parallel()
				var header []string
				for one := range strings.SplitSeq(want.header, ", ") {
					if name, value, ok := strings.Cut(one, ": "); ok {
						header = append(header, name, value)
					}
				}
				server := newReceiver(t, answerWith(status, want.contentType, want.body, header...))
				result, err := c.handler(t.Context(), newAttempt(1, `{"url": "`+server.URL+`"}`))
				if strings.HasPrefix(want.output, "WORKER.") {
					if got := asFailure(t, result, err); got.Code != want.output || got.Retryable || len(got.Message) > 1200 {
						t.Errorf("failed with %+v", got)
					}
					return
				}
				if err != nil || string(result.Output) != want.output || result.WaitFor != 0 || (result.Output == nil) != (want.output == "") {
					t.Errorf("ended with %.200s, %v", result.Output, err)
				}
			})
		}
	}
}

func TestAFunctionThatAcceptsIsWaitedFor(t *testing.T) {
	t.Parallel()
	server := newReceiver(t, answerWith(202, "application/json", `{"broken`)) // the handler does not read it
	c := newCalls(t, "FUNCTION", callConfig())
	result, err := c.run(`{"url": "` + server.URL + `", "callbackTimeoutMs": 60000}`)
	if err != nil || result.Output != nil || result.WaitFor > time.Minute || result.WaitFor < 30*time.Second {
		t.Errorf("%+v, %v", result, err)
	}
	result, err = c.run(`{"url": "` + server.URL + `"}`)
	if err != nil || result.WaitFor > time.Hour || result.WaitFor < 59*time.Minute {
		t.Errorf("%+v, %v", result, err)
	}
}

func TestWithoutCallbacksAFunctionMustAnswerAtOnce(t *testing.T) {
	t.Parallel()
	cfg := callConfig()
	cfg.Callback.Secrets = nil
	c := newCalls(t, "FUNCTION", cfg)
	server := newReceiver(t, answerWith(200, "", "7"))
	if result, err := c.run(`{"url": "` + server.URL + `"}`); err != nil || string(result.Output) != "7" {
		t.Errorf("%+v, %v", result, err)
	}
	for name := range server.only(t).Header {
		if strings.HasPrefix(name, "X-Callback") {
			t.Errorf("receives %s", name)
		}
	}
	server = newReceiver(t, answerWith(202, "", ""))
	if got := c.failure(`{"url": "` + server.URL + `"}`); got.Code != "WORKER.NOT_CONFIGURED" || got.Retryable {
		t.Errorf("%+v", got)
	}
}

// The SDK's receiver reads the handler's events, and the handler reads its answers.
func TestTheCloudEventsSDKAnswers(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	protocol, err := cloudevents.NewHTTP(cehttp.WithListener(listener))
	if err != nil {
		t.Fatal(err)
	}
	client, err := cloudevents.NewClient(protocol)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error)
	go func() {
		stopped <- client.StartReceiver(ctx, func(_ context.Context, e cloudevents.Event) (*cloudevents.Event, cloudevents.Result) {
			var n struct{ Times int }
			if err := e.DataAs(&n); err != nil {
				return nil, cloudevents.NewHTTPResult(http.StatusBadRequest, "no: %v", err)
			}
			if n.Times < 0 {
				return nil, cloudevents.NewHTTPResult(http.StatusTooManyRequests, "later")
			}
			reply := cloudevents.NewEvent()
			reply.SetID(e.ID() + ".done")
			reply.SetSource("/double")
			reply.SetType("io.example.done")
			return &reply, reply.SetData(cloudevents.ApplicationJSON, map[string]any{"times": n.Times * 2, "attempt": e.Extensions()["attempt"]})
		})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})
	c := newCalls(t, "FUNCTION", callConfig())
	url := "http://" + listener.Addr().String()
	result, err := c.run(`{"url": "` + url + `", "data": {"times": 21}}`)
	if err != nil || string(result.Output) != `{"attempt":"1","times":42}` {
		t.Errorf("%s, %v", result.Output, err)
	}
	if got := c.failure(`{"url": "` + url + `", "data": {"times": "x"}}`); got.Retryable || !strings.Contains(got.Message, "400") {
		t.Errorf("%+v", got)
	}
	if got := c.failure(`{"url": "` + url + `", "data": {"times": -1}}`); !got.Retryable || !strings.Contains(got.Message, "429") {
		t.Errorf("%+v", got)
	}
}

// A function answers with the SDK's writer, in structured or binary mode.
func TestEventsOfTheSDKAreRead(t *testing.T) {
	t.Parallel()
	for name, encoding := range map[string]func(context.Context) context.Context{
		"binary": binding.WithForceBinary, "structured": binding.WithForceStructured,
	} {
		for contentType, c := range map[string]struct {
			data any
			want string
		}{
			"application/json": {map[string]int{"a": 1}, `{"a":1}`},
			"text/plain":       {"grüße", `"grüße"`},
		} {
			server := newReceiver(t, func(w http.ResponseWriter, r *http.Request) {
				e := event.New()
				e.SetID("1")
				e.SetSource("/f")
				e.SetType("done")
				e.SetSubject("for \"you\" — 100%")
				if err := e.SetData(contentType, c.data); err != nil {
					t.Error(err)
				}
				recorder := httptest.NewRecorder() // the test escapes the headers, because the SDK does not
				if err := cehttp.WriteResponseWriter(encoding(r.Context()), binding.ToMessage(&e), 200, recorder); err != nil {
					t.Error(err)
				}
				for name, values := range recorder.Header() {
					w.Header()[name] = values
				}
				if name == "binary" {
					w.Header().Set("Ce-Subject", "for%20%22you%22%20%E2%80%94%20100%25")
				}
				_, _ = w.Write(recorder.Body.Bytes())
			})
			result, err := newCalls(t, "FUNCTION", callConfig()).run(`{"url": "` + server.URL + `"}`)
			if err != nil || string(result.Output) != c.want {
				t.Errorf("%s %s: %s, %v", name, contentType, result.Output, err)
			}
		}
	}
}

func FuzzAnswer(f *testing.F) {
	for _, a := range answers {
		if len(a.body) < 1000 {
			f.Add(200, a.contentType, strings.Contains(a.header, "Spec"), a.body)
		}
	}
	f.Add(500, "application/json", false, `{"errorCode": "A", "message": "\u0000\ud800", "retryable": true}`)
	f.Add(400, "", true, "\xff\x1b")
	f.Fuzz(func(t *testing.T, status int, contentType string, isEvent bool, body string) {
		header := http.Header{"Content-Type": {contentType}}
		if isEvent {
			header["Ce-Specversion"], header["Ce-Id"], header["Ce-Source"], header["Ce-Type"] = []string{"1.0"}, []string{"1"}, []string{"/"}, []string{"a"}
		}
		output, failure := handlers.ReadAnswer(status, header, []byte(body))
		if failure != nil {
			if len(failure.Code) > 64 || failure.Code == "" || len(failure.Message) > 1200 || strings.ContainsAny(failure.Message, "\x00\x1b\n\r\x7f\u202e") {
				t.Errorf("%+v", failure)
			}
		} else if output != nil && (!json.Valid(output) || len(output) > handlers.MaxOutput) {
			t.Errorf("output %q", output)
		}
	})
}

func TestACallSendsTheEventOfItsJob(t *testing.T) {
	t.Parallel()
	for _, jobType := range []string{"FUNCTION", "EXTERNAL"} {
		t.Run(jobType, func(t *testing.T) {
			t.Parallel()
			callSendsEvent(t, newCalls(t, jobType, callConfig()))
		})
	}
}

func callSendsEvent(t *testing.T, c calls) {
	t.Helper()
	server := newReceiver(t, answerWith(204, "", ""))
	a := newAttempt(1, `{"url": "`+server.URL+`"}`)
	a.Event = json.RawMessage(`{"id": "größe 9", "source": "/shop", "n": 7}`)
	if _, err := c.handler(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	if got := server.only(t).Header.Get("X-Event"); got != `{"id":"gr\u00f6\u00dfe 9","source":"/shop","n":7}` {
		t.Errorf("sent %s", got)
	}
	if f := c.failure(`{"url": "` + server.URL + `", "headers": {"x_event": "{}"}}`); f.Code != "WORKER.INVALID_PAYLOAD" {
		t.Errorf("a payload sends an event: %+v", f)
	}
	plain := newReceiver(t, answerWith(204, "", ""))
	if _, err := c.run(`{"url": "` + plain.URL + `"}`); err != nil || plain.only(t).Header.Values("X-Event") != nil {
		t.Errorf("a job of no event sends %v, %v", plain.calls, err)
	}
}
