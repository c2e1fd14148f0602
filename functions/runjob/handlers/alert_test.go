package handlers_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/jobweaver/jobweaver/functions/runjob/handlers"
	"github.com/jobweaver/jobweaver/shared/httpevent"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
)

// noticeOf returns a notice of an alert about charges of the owner acme.
func noticeOf(state jobspec.NoticeState) jobspec.Notice {
	owner, jobType, percent := "acme", "CHARGE<1>", 20
	since := time.Date(2026, 11, 29, 9, 0, 0, 0, time.UTC)
	return jobspec.Notice{
		NoticeID: uuid.MustParse("01a208c0-12fd-7d04-80f2-fa7f292cfc79"), At: since.Add(time.Minute), State: state, Since: &since,
		Alert: "charges", OwnerID: &owner, JobType: &jobType, Failures: 10, Percent: &percent, WindowMinutes: 5, Failed: 12, Ended: 40,
	}
}

func alertPayload(t *testing.T, to jobspec.Destination, state jobspec.NoticeState) string {
	t.Helper()
	text, err := json.Marshal(jobspec.AlertPayload{To: to, Notice: noticeOf(state)})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestANoticeReachesSlackAsText(t *testing.T) {
	t.Parallel()
	server := newReceiver(t, answerWith(200, "text/plain", "ok"))
	cfg := callConfig()
	cfg.Calls.Public.URL = "https://jobs.example.org/weaver/"
	to := jobspec.Destination{Slack: server.URL + "/services/secret"}
	if result, err := newCalls(t, jobspec.Alert, cfg).run(alertPayload(t, to, jobspec.NoticeFiring)); err != nil || result.Output != nil {
		t.Fatal(result, err)
	}
	got := server.only(t)
	var body struct{ Text string }
	if err := json.Unmarshal(got.body, &body); err != nil || got.Header.Get("Content-Type") != "application/json" {
		t.Fatalf("%s: %v", got.body, err)
	}
	const want = `*[FIRING] charges: 12 jobs failed within 5 minutes*
12 of 40 jobs that ended failed.
Threshold: 10 failures within 5 minutes, and 20 % of the jobs that ended.
Job type: CHARGE&lt;1&gt;
Owner: acme
Since: 2026-11-29T09:00:00Z
https://jobs.example.org/weaver/alerts/charges?ownerId=acme`
	if body.Text != want {
		t.Errorf("it got\n%s", body.Text)
	}
}

func TestANoticeReachesAWebhookAsASignedEventWithOneID(t *testing.T) {
	t.Parallel()
	server := newReceiver(t, answerWith(204, "", ""))
	c := newCalls(t, jobspec.Alert, callConfig())
	for number := 1; number <= 2; number++ {
		a := newAttempt(number, alertPayload(t, jobspec.Destination{Webhook: server.URL + "/hook"}, jobspec.NoticeResolved))
		if _, err := c.handler(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		got := server.calls[number-1]
		for _, secret := range callKeys(t, a.OwnerID) {
			w, err := standardwebhooks.NewWebhook(secret)
			if err != nil {
				t.Fatal(err)
			}
			if err := w.Verify(got.body, got.Header); err != nil {
				t.Errorf("signature: %v", err)
			}
		}
		e, err := httpevent.Binary(got.Header, got.body)
		if err != nil {
			t.Fatal(err)
		}
		var data struct {
			Type string
			jobspec.Notice
		}
		if err := json.Unmarshal(e.Data(), &data); err != nil {
			t.Fatal(err)
		}
		if e.Type() != "io.jobweaver.alert.v1" || data.Type != e.Type() || e.ID() != noticeOf("").NoticeID.String() ||
			data.State != jobspec.NoticeResolved || data.Failed != 12 || *data.OwnerID != "acme" || !e.Time().Equal(data.At) {
			t.Errorf("sent %v %s", e, e.Data())
		}
	}
}

func TestANoticeIsSentByMail(t *testing.T) {
	t.Parallel()
	o := &office{}
	cfg := callConfig()
	cfg.Email = o.open(t, "127.0.0.1:0", nil, nil)
	if _, err := newCalls(t, jobspec.Alert, cfg).run(alertPayload(t, jobspec.Destination{Email: []string{"ada@example.org"}}, jobspec.NoticeTest)); err != nil {
		t.Fatal(err)
	}
	got := o.got()
	if len(got) != 1 || !strings.Contains(got[0].raw, "Subject: [TEST] charges: this is a test of the alert\r\n") || got[0].to[0] != "ada@example.org" {
		t.Errorf("the server got %+v", got)
	}
}

// The path of a Slack URL is a secret. Failures are shown to readers, and logged.
func TestTheFailureOfANoticeHidesThePathOfItsURL(t *testing.T) {
	t.Parallel()
	refusing := newReceiver(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte("no such hook: " + r.URL.String()))
	})
	closed := newReceiver(t, answerWith(200, "", ""))
	closed.Close()
	for name, server := range map[string]string{"refuses": refusing.URL, "is away": closed.URL, "is private": "http://10.0.0.1"} {
		for _, to := range []jobspec.Destination{
			{Slack: server + "/services/T0/s3cret?token=s3cret"}, {Webhook: server + "/s3cret%20/x"},
		} {
			got := newCalls(t, jobspec.Alert, callConfig()).failure(alertPayload(t, to, jobspec.NoticeFiring))
			if strings.Contains(got.Message, "s3cret") || !strings.Contains(got.Message, "/…") || got.Retryable != (name == "is away") {
				t.Errorf("%s: %+v", name, got)
			}
		}
	}
}

func TestAPayloadOfANoticeWithoutADestinationIsRefused(t *testing.T) {
	t.Parallel()
	c := newCalls(t, jobspec.Alert, callConfig())
	for _, to := range []string{`{}`, `{"slack": "ftp://x"}`, `{"email": []}`, `{"slack": "https://a.example", "webhook": "https://a.example"}`, `{"pager": "1"}`} {
		payload := strings.Replace(alertPayload(t, jobspec.Destination{}, jobspec.NoticeTest), `"to":{}`, `"to":`+to, 1)
		if got := c.failure(payload); got.Code != "WORKER.INVALID_PAYLOAD" || got.Retryable {
			t.Errorf("%s: %+v", to, got)
		}
	}
	bare, err := handlers.NewEmail(handlers.EmailConfig{})
	if err != nil {
		t.Fatal(err)
	}
	run := jobevent.Run{JobID: uuid.New(), Attempt: 1, Payload: []byte(alertPayload(t, jobspec.Destination{}, jobspec.NoticeTest))}
	_, err = handlers.NewAlert(nil, bare, "").Run(t.Context(), handlers.NewAttempt(run, uuid.Nil, func(slog.Level, string) {}, nil))
	if got := asFailure(t, handlers.Result{}, err); got.Code != "WORKER.INVALID_PAYLOAD" {
		t.Errorf("%+v", got)
	}
}
