package webhook_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/jobweaver/jobweaver/shared/secret"
	"github.com/jobweaver/jobweaver/shared/webhook"
)

const (
	vector = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" // of the specification's test vectors
	token  = "019aa5d0-0000-7000-8000-000000000001.2"
)

var (
	secretA = whsec("a", 32)
	secretB = whsec("b", 64)
)

func whsec(letter string, size int) string {
	return "whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat(letter, size)))
}

func signer(t testing.TB, secrets ...string) *webhook.Signer {
	t.Helper()
	s, err := webhook.NewSigner(secrets)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func callbackKeys(t testing.TB, secrets ...string) *webhook.CallbackKeys {
	t.Helper()
	k, err := webhook.NewCallbackKeys(secrets)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func signed(t testing.TB, id string, at time.Time, body string, secrets ...string) http.Header {
	h := http.Header{}
	signer(t, secrets...).Sign(h, id, at, []byte(body))
	return h
}

func TestTheSpecificationsVectorHasItsSignature(t *testing.T) {
	t.Parallel()
	h := signed(t, "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 987), `{"test": 2432232314}`, vector)
	for name, want := range map[string]string{
		"webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek", "webhook-timestamp": "1614265330",
		"webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
	} {
		if got := h.Get(name); got != want {
			t.Errorf("%s is %q", name, got)
		}
	}
}

func TestEachSecretSignsWhileOneReplacesAnother(t *testing.T) {
	t.Parallel()
	h := signed(t, "id", time.Now(), "body", secretA, secretB)
	for _, s := range []string{secretA, secretB} {
		library, err := standardwebhooks.NewWebhook(s)
		if err != nil {
			t.Fatal(err)
		}
		if err := library.Verify([]byte("body"), h); err != nil {
			t.Errorf("who knows one of the secrets: %v", err)
		}
	}
	if h := signed(t, "id", time.Now(), "body"); h.Get("webhook-id") != "id" || h.Get("webhook-signature") != "" {
		t.Errorf("without a secret: %v", h)
	}
}

func TestASecretThatIsNoneIsRefusedAndNotShown(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{
		"", "whsec_", strings.TrimPrefix(secretA, "whsec_"), whsec("x", 23), whsec("x", 65), secretA + "=",
		"whsec_" + strings.Repeat("~", 40), "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw MfKQ", strings.ToUpper(secretA),
	} {
		_, err := webhook.NewSigner([]string{secretA, bad})
		if err == nil || !strings.HasPrefix(err.Error(), "WEBHOOK_SECRETS: number 2 of 2 ") ||
			len(bad) > 10 && strings.Contains(err.Error(), bad[6:]) {
			t.Errorf("%q: %v", bad, err)
		}
		_, err = webhook.NewCallbackKeys([]string{bad})
		if err == nil || !strings.HasPrefix(err.Error(), "CALLBACK_SECRETS: number 1 of 1 ") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	signer(t, secretA, " "+secretB+" ", whsec("x", 24), whsec("x", 64))
}

func TestSecretsAreNeverPrinted(t *testing.T) {
	t.Parallel()
	keys := callbackKeys(t, secretA)
	type nested struct {
		Config   webhook.Config
		Callback *webhook.CallbackConfig
		signer   *webhook.Signer
		keys     webhook.CallbackKeys
	}
	values := []any{
		webhook.Config{Secrets: secret.AllOf(secretA)}, &webhook.CallbackConfig{Secrets: secret.AllOf(secretA)},
		secret.AllOf(secretA), signer(t, secretA), keys, *keys,
		nested{
			webhook.Config{Secrets: secret.AllOf(secretA)}, &webhook.CallbackConfig{Secrets: secret.AllOf(secretA)},
			signer(t, secretA), *keys,
		},
	}
	var out bytes.Buffer
	for _, value := range values {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%o"} {
			fmt.Fprintf(&out, verb+" ", value)
		}
		slog.New(slog.NewJSONHandler(&out, nil)).Info("printed", "value", value)
		slog.New(slog.NewTextHandler(&out, nil)).Info("printed", "value", value)
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(text)
	}
	raw := []byte(strings.Repeat("a", 32))
	for _, shape := range []string{
		secretA, secretA[6:], string(raw[:8]), fmt.Sprintf("%x", raw[:8]), fmt.Sprintf("%x", secretA[6:14]), "97 97 97", "0x61, 0x61", "141 141",
	} {
		if strings.Contains(strings.ToLower(out.String()), strings.ToLower(shape)) {
			t.Errorf("%q is shown", shape)
		}
	}
	if n := strings.Count(out.String(), "[secret]"); n < 50 {
		t.Errorf("hidden %d times: %s", n, out.String())
	}
}
