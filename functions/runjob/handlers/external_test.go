package handlers_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/functions/runjob/handlers"
)

func TestAnExternalJobIsSentAndWaits(t *testing.T) {
	t.Parallel()
	for _, status := range []int{200, 201, 202, 204, 299} {
		server := newReceiver(t, answerWith(status, "", ""))
		c := newCalls(t, "EXTERNAL", callConfig())
		a := newAttempt(3, `{"url": "`+server.URL+`/in?x=1", "data": {"a": "<&>", "n": 12345678901234567890}, "headers": {"Authorization": "Bearer x"}, "callbackTimeoutMs": 600000}`)
		result, err := c.handler(t.Context(), a)
		if err != nil || result.Output != nil || result.Snooze != 0 ||
			result.WaitFor > 10*time.Minute || result.WaitFor < 9*time.Minute {
			t.Fatalf("%d: %+v, %v", status, result, err)
		}
		got := server.only(t)
		got.wantSigned(t, a, 10*time.Minute)
		want := fmt.Sprintf(`{"type":"io.jobweaver.external.call.v1","ownerId":"acme","jobId":%q,"attempt":3,"jobType":"EXTERNAL","data":{"a":"<&>","n":12345678901234567890},"callback":{"url":%q,"secret":%q,"deadlineAt":%q}}`,
			a.JobID, callbackURL, got.Header.Get("X-Callback-Secret"), got.Header.Get("X-Callback-Deadline"))
		if string(got.body) != want {
			t.Errorf("sent %s, not %s", got.body, want)
		}
		if got.URL.String() != "/in?x=1" || got.Header.Get("Authorization") != "Bearer x" || got.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s with %v", got.URL, got.Header)
		}
	}
}

func TestEachAttemptHasASecretOfItsOwn(t *testing.T) {
	t.Parallel()
	server := newReceiver(t, answerWith(200, "", ""))
	c := newCalls(t, "EXTERNAL", callConfig())
	secrets := map[string]bool{}
	for number := range 3 {
		if _, err := c.handler(t.Context(), newAttempt(number+1, `{"url": "`+server.URL+`"}`)); err != nil {
			t.Fatal(err)
		}
	}
	for _, call := range server.calls {
		var body struct {
			Data     any
			Callback struct{ Secret string }
		}
		if err := json.Unmarshal(call.body, &body); err != nil || body.Data != nil || !strings.HasPrefix(body.Callback.Secret, "whsec_") {
			t.Errorf("sent %s", call.body)
		}
		secrets[body.Callback.Secret] = true
	}
	if len(secrets) != 3 {
		t.Errorf("secrets %v", secrets)
	}
}

func TestTheWaitEndsAtTheDeadlineThatWasSent(t *testing.T) {
	t.Parallel()
	server := newReceiver(t, func(_ http.ResponseWriter, r *http.Request) {
		deadline, err := time.Parse(time.RFC3339, r.Header.Get("X-Callback-Deadline"))
		if err != nil {
			t.Error(err)
		}
		<-time.After(time.Until(deadline)) // it answers too late
	})
	c := newCalls(t, "EXTERNAL", callConfig())
	result, err := c.run(`{"url": "` + server.URL + `", "callbackTimeoutMs": 50}`)
	if err != nil || result.WaitFor < time.Millisecond || result.WaitFor > 10*time.Millisecond {
		t.Errorf("waits for %s, %v", result.WaitFor, err)
	}
	if result, err := c.run(`{"url": "` + server.URL + `", "callbackTimeoutMs": 1.0}`); err != nil || result.WaitFor != time.Millisecond {
		t.Errorf("waits for %s, %v", result.WaitFor, err)
	}
}

func TestWithoutCallbacksAnExternalJobCallsNoSystem(t *testing.T) {
	t.Parallel()
	server := newReceiver(t, answerWith(200, "", ""))
	for name, without := range map[string]func(*handlers.Config){
		"CALLBACK_URL":     func(c *handlers.Config) { c.Calls.CallbackURL = "" },
		"CALLBACK_SECRETS": func(c *handlers.Config) { c.Callback.Secrets = nil },
	} {
		cfg := callConfig()
		without(&cfg)
		got := newCalls(t, "EXTERNAL", cfg).failure(`{"url": "` + server.URL + `"}`)
		if got.Code != "WORKER.NOT_CONFIGURED" || got.Retryable || !strings.Contains(got.Message, name) {
			t.Errorf("without %s: %+v", name, got)
		}
	}
	if len(server.calls) != 0 {
		t.Error("it was called")
	}
}

func TestWithoutSigningSecretsNothingIsSigned(t *testing.T) {
	t.Parallel()
	server := newReceiver(t, answerWith(200, "", ""))
	cfg := callConfig()
	cfg.Webhook.Secrets = nil
	if _, err := newCalls(t, "EXTERNAL", cfg).run(`{"url": "` + server.URL + `"}`); err != nil {
		t.Fatal(err)
	}
	if got := server.only(t).Header.Get("webhook-signature"); got != "" {
		t.Errorf("signed %s", got)
	}
}
