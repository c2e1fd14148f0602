package webhook_test

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/webhook"
)

func TestAnAttemptsSecretSpeaksForThatAttemptOnly(t *testing.T) {
	t.Parallel()
	keys := callbackKeys(t, secretA, secretB)
	own := keys.Secret(token)
	if raw, err := base64.StdEncoding.DecodeString(own[6:]); err != nil || len(raw) != 32 || own[:6] != "whsec_" {
		t.Errorf("the secret is %q", own)
	}
	former := callbackKeys(t, secretB).Secret(token) // before secretA was put in front
	for name, c := range map[string]struct {
		token, given string
		want         bool
	}{
		"its own":                     {token, own, true},
		"one made before a rotation":  {token, former, true},
		"a global one":                {token, secretA, true},
		"the other global one":        {token, secretB, true},
		"of another attempt":          {token + "3", own, false},
		"of another job":              {"029" + token[3:], own, false},
		"by a key that is not ours":   {token, callbackKeys(t, vector).Secret(token), false},
		"nothing":                     {token, "", false},
		"without what it begins with": {token, own[6:], false},
		"with something after it":     {token, own + " ", false},
		"cut":                         {token, own[:len(own)-1], false},
		"the token":                   {token, token, false},
	} {
		if got := keys.CheckSecret(c.token, c.given); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestWithoutASecretNoCallbackIsAccepted(t *testing.T) {
	t.Parallel()
	h := signed(t, "id", time.Now(), "body", secretA)
	for _, keys := range []*webhook.CallbackKeys{nil, callbackKeys(t)} {
		if !keys.Empty() || keys.Secret(token) != "" || keys.CheckSecret(token, "") || keys.CheckSecret(token, secretA) {
			t.Error("a callback is accepted")
		}
		if _, err := keys.Verify(token, h, []byte("body"), time.Now()); err == nil {
			t.Error("a signature is believed")
		}
	}
}

func TestASignatureIsKnown(t *testing.T) {
	t.Parallel()
	const body = `{"jobId": "019aa5d0"}`
	now := time.Unix(1_800_000_000, 0)
	keys := callbackKeys(t, secretA, secretB)
	former := callbackKeys(t, secretB).Secret(token)
	foreign := keys.Secret(token + "1")
	at := func(d time.Duration, secrets ...string) http.Header {
		return signed(t, "msg.1", now.Add(d), body, secrets...)
	}
	but := func(name string, values ...string) http.Header {
		h := at(0, secretA)
		h[http.CanonicalHeaderKey(name)] = values
		return h
	}
	signature := at(0, secretA).Get("webhook-signature")
	for name, c := range map[string]struct {
		h    http.Header
		want bool
	}{
		"by the attempt's secret":             {at(0, keys.Secret(token)), true},
		"by one made before a rotation":       {at(0, former), true},
		"by a global one":                     {at(0, secretA), true},
		"by the other global one":             {at(0, secretB), true},
		"by an unknown one and a known one":   {at(0, vector, foreign, secretB), true},
		"beside one of another kind":          {but("webhook-signature", "v1a,"+signature[3:]+" v2 "+signature), true},
		"5 minutes ago":                       {at(-5*time.Minute, secretA), true},
		"in 5 minutes":                        {at(5*time.Minute, secretA), true},
		"more than 5 minutes ago":             {at(-5*time.Minute-time.Second, secretA), false},
		"in more than 5 minutes":              {at(5*time.Minute+time.Second, secretA), false},
		"by another attempt's secret":         {at(0, foreign), false},
		"by an unknown one":                   {at(0, vector), false},
		"with another id":                     {but("webhook-id", "msg.2"), false},
		"with no id":                          {but("webhook-id"), false},
		"with an empty id":                    {but("webhook-id", ""), false},
		"with two ids":                        {but("webhook-id", "msg.1", "msg.1"), false},
		"with another timestamp":              {but("webhook-timestamp", "1800000001"), false},
		"with its timestamp in another form":  {but("webhook-timestamp", "+1800000000"), false},
		"with its timestamp after a zero":     {but("webhook-timestamp", "01800000000"), false},
		"with its timestamp as a fraction":    {but("webhook-timestamp", "1800000000.0"), false},
		"with two timestamps":                 {but("webhook-timestamp", "1800000000", "1800000000"), false},
		"with no signature":                   {but("webhook-signature"), false},
		"with an empty signature":             {but("webhook-signature", ""), false},
		"with a signature of nothing":         {but("webhook-signature", "v1,"), false},
		"with a signature of another kind":    {but("webhook-signature", "v1a"+signature[2:]), false},
		"with half a signature":               {but("webhook-signature", signature[:len(signature)/2]), false},
		"with more signatures than one reads": {but("webhook-signature", strings.Repeat("v1,x ", 300)+signature), false},
	} {
		id, err := keys.Verify(token, c.h, []byte(body), now)
		if (err == nil) != c.want || c.want && id != "msg.1" {
			t.Errorf("signed %s: %q, %v", name, id, err)
		}
	}
	if _, err := keys.Verify(token, at(0, secretA), []byte(body+" "), now); err == nil {
		t.Error("another body is believed")
	}
}

func TestWhatIsSignedIsCutInOnePlaceOnly(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	keys := callbackKeys(t, secretA)
	for _, c := range []struct{ id, stamp, body string }{
		{"a.1800000000", "1800000001", "{}"},
		{"a.1800000000.b", "1800000001", "{}"},
		{"a\nb", "1800000000", "{}"},
		{"ä", "1800000000", "{}"},
		{"a b", "1800000000", "{}"},
		{strings.Repeat("a", 256), "1800000000", "{}"},
	} {
		h := signed(t, c.id, now, c.body, secretA)
		if _, err := keys.Verify(token, h, []byte(c.body), now); err == nil {
			t.Errorf("the id %q is taken", c.id)
		}
	}
	// Signed with the id "a", this message cannot pass with another id.
	h := signed(t, "a", now, "1800000001.{}", secretA)
	if _, err := keys.Verify(token, h, []byte("1800000001.{}"), now); err != nil {
		t.Error(err)
	}
	h.Set("webhook-id", "a.1800000000")
	h.Set("webhook-timestamp", "1800000001")
	if _, err := keys.Verify(token, h, []byte("{}"), now); err == nil {
		t.Error("an id is believed that was never signed")
	}
}

func FuzzVerifyBelievesOnlyWhatWasSigned(f *testing.F) {
	const at = 1_800_000_000
	f.Add("id", int64(0), []byte(`{"a": 1}`), "id", "1800000000", []byte(`{"a": 1}`), token)
	f.Add("id", int64(0), []byte(`1800000001.x`), "id.1800000000", "1800000001", []byte(`x`), token)
	f.Add("a.1800000000", int64(1), []byte(`x`), "a", "1800000000", []byte(`1800000001.x`), token)
	f.Add("id", int64(0), []byte(`x`), "id", "+1800000000", []byte(`x`), token)
	f.Add("id", int64(0), []byte(``), "id.", "1800000000", []byte(``), token+"1")
	f.Fuzz(func(t *testing.T, id string, shift int64, body []byte, id2, stamp2 string, body2 []byte, token2 string) {
		sentAt := time.Unix(at+shift%300, 0)
		keys := callbackKeys(t, secretA, secretB)
		h := http.Header{}
		signer(t, keys.Secret(token)).Sign(h, id, sentAt, body)
		stamp := h.Get("webhook-timestamp")
		h2 := h.Clone()
		h2.Set("webhook-id", id2)
		h2.Set("webhook-timestamp", stamp2)
		got, err := keys.Verify(token2, h2, body2, time.Unix(at, 0))
		same := id2 == id && stamp2 == stamp && string(body2) == string(body) && token2 == token
		// Ids that look like instants are never accepted, because a message with such an id could be cut at another
		// place and still be signed.
		if _, sound := keys.Verify(token, h, body, time.Unix(at, 0)); sound != nil {
			return
		}
		if err == nil && (!same || got != id) {
			t.Fatalf("signed %q %s %q for %s, believed %q %s %q for %s", id, stamp, body, token, id2, stamp2, body2, token2)
		}
		if err != nil && same {
			t.Fatalf("signed %q %s %q: %v", id, stamp, body, err)
		}
	})
}
