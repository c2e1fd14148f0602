package jobspec_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobspec"
)

func TestTheJobOfANoticeIsValidAndInAQueueOfTheInstallation(t *testing.T) {
	t.Parallel()
	percent := 20
	for _, c := range []struct {
		queues []string
		want   string
	}{{[]string{"mail", "default"}, "default"}, {[]string{"mail", "pay"}, "mail"}} {
		for _, to := range []jobspec.Destination{
			{Slack: "https://example.org/x"}, {Webhook: "https://example.org/x"}, {Email: []string{"Ada <ada@example.org>"}},
		} {
			req, err := jobspec.NewAlertJob("acme", c.queues, jobspec.AlertPayload{To: to, Notice: jobspec.Notice{
				NoticeID: uuid.New(), At: time.Now(), State: jobspec.NoticeFiring, Alert: "a", Failures: 1, Percent: &percent, WindowMinutes: 5,
			}})
			if err != nil || req.Queue != c.want || req.OwnerID != "acme" {
				t.Fatalf("%+v, %v", req, err)
			}
			if err := req.Validate(jobspec.Rules{Queues: c.queues}); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestThePayloadOfANoticeIsShownWithoutThePathOfItsURL(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		`{"to": {"slack": "https://example.org:8443/s3cret?t=s3cret"}, "notice": {"alert": "a"}}`: `{"to":{"slack":"https://example.org:8443/…"},"notice":{"alert":"a"}}`,
		`{"to": {"webhook": "http://example.org"}, "notice": 1}`:                                  `{"to":{"webhook":"http://example.org/…"},"notice":1}`,
		`{"to": {"email": ["a@example.org"]}, "notice": 1}`:                                       `{"to":{"email":["a@example.org"]},"notice":1}`,
		`{"to": "https://example.org/s3cret"}`:                                                    `null`, // submitted by hand
		`"https://example.org/s3cret"`:                                                            `null`,
		`{"to": {"slack": "://s3cret"}, "s3cret": 1}`:                                             `{"to":{},"notice":null}`,
	} {
		got := jobspec.ShownPayload(jobspec.Alert, json.RawMessage(given))
		if string(got) != want || strings.Contains(string(got), "s3cret") {
			t.Errorf("%s is shown as %s", given, got)
		}
	}
	if got := jobspec.ShownPayload("OWN", json.RawMessage(`{"to": "x"}`)); string(got) != `{"to": "x"}` {
		t.Errorf("another type's payload is shown as %s", got)
	}
}
