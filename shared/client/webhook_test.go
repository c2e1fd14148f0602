package client_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/jobweaver/jobweaver/shared/client"
)

const (
	oldSecret = "whsec_b2xkIG9sZCBvbGQgb2xkIG9sZCBvbGQ="
	newSecret = "whsec_bmV3IG5ldyBuZXcgbmV3IG5ldyBuZXc="
	message   = `{"type": "io.jobweaver.job.status.v1", "jobId": "j1", "status": "FAILED", "version": 4, "ownerId": null,
		"lastError": {"errorCode": "SHOP.SOLD_OUT", "message": "none left"}}`
)

func signed(t *testing.T, secret, body string, at time.Time) *http.Request {
	t.Helper()
	by, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	signature, err := by.Sign("j1.v4", at, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, "/done", strings.NewReader(body))
	r.Header.Set("Webhook-Id", "j1.v4")
	r.Header.Set("Webhook-Timestamp", strconv.FormatInt(at.Unix(), 10))
	r.Header.Set("Webhook-Signature", signature)
	return r
}

func TestAWebhookIsVerifiedWithOneOfTheSecrets(t *testing.T) {
	t.Parallel()
	hook, err := client.NewWebhook(newSecret, oldSecret)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{oldSecret, newSecret} {
		end, err := hook.VerifyRequest(signed(t, secret, message, time.Now()))
		if err != nil || end.ID != "j1.v4" || end.Job.JobID != "j1" || end.Job.LastError.ErrorCode != "SHOP.SOLD_OUT" {
			t.Errorf("%+v, %v", end, err)
		}
		if ended := (*client.EndedError)(nil); !errors.As(end.Job.Err(), &ended) || !strings.Contains(ended.Error(), "none left") {
			t.Errorf("%v", end.Job.Err())
		}
	}
}

func TestAWebhookThatIsNotOursIsRefused(t *testing.T) {
	t.Parallel()
	hook, err := client.NewWebhook(newSecret)
	if err != nil {
		t.Fatal(err)
	}
	changed := signed(t, newSecret, message, time.Now())
	changed.Body = http.NoBody
	for name, r := range map[string]*http.Request{
		"another secret":  signed(t, oldSecret, message, time.Now()),
		"an old one":      signed(t, newSecret, message, time.Now().Add(-6*time.Minute)),
		"a changed one":   changed,
		"an unsigned one": httptest.NewRequest(http.MethodPost, "/done", strings.NewReader(message)),
		"a huge one":      signed(t, newSecret, strings.Repeat(" ", 2<<20), time.Now()),
		"no JSON":         signed(t, newSecret, "{", time.Now()),
	} {
		if end, err := hook.VerifyRequest(r); err == nil {
			t.Errorf("%s is accepted: %+v", name, end)
		}
	}
	if _, err := client.NewWebhook(" " + newSecret + "\r\n"); err != nil {
		t.Errorf("the secret of a file with its line end: %v", err)
	}
	for _, secrets := range [][]string{
		{}, {"whsec_!"}, {"whsec_"}, {"v1,whsec_AAA!"}, {"!"}, {strings.TrimPrefix(newSecret, "whsec_") + "!"}, {newSecret, "whsec_AA!AA"},
	} {
		if _, err := client.NewWebhook(secrets...); err == nil || strings.Contains(err.Error(), "!") {
			t.Errorf("secrets %q: %v", secrets, err)
		}
	}
}
