package webhook_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/jobweaver/jobweaver/shared/secret"
	"github.com/jobweaver/jobweaver/shared/webhook"
)

func outgoing(t *testing.T, purpose webhook.Purpose, secrets ...string) *webhook.Outgoing {
	t.Helper()
	o, err := webhook.NewOutgoing(webhook.Config{Secrets: secret.AllOf(secrets...)}, purpose)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func verifies(t *testing.T, with string, h http.Header, body string) bool {
	t.Helper()
	hook, err := standardwebhooks.NewWebhook(with)
	if err != nil {
		t.Fatal(err)
	}
	return hook.Verify([]byte(body), h) == nil
}

// A client chooses the body of a FUNCTION's request: its signature must not verify as that of a delivery.
func TestAKeyVerifiesOnePurposeOfOneOwner(t *testing.T) {
	t.Parallel()
	signers := map[webhook.Purpose]*webhook.Outgoing{
		webhook.End:  outgoing(t, webhook.End, secretA, secretB),
		webhook.Call: outgoing(t, webhook.Call, secretA, secretB),
	}
	owners := []string{"", "acme", "acme2", "end", "call"}
	var all []string
	for purpose, signer := range signers {
		for _, owner := range owners {
			h := http.Header{}
			signer.Sign(h, owner, "id", time.Now(), []byte("body"))
			for other, keys := range signers {
				for _, theirs := range owners {
					for i, key := range keys.Secrets(theirs) {
						want := other == purpose && theirs == owner
						if got := verifies(t, key, h, "body"); got != want {
							t.Errorf("%s of %q by key %d for %s of %q: %v", purpose, owner, i, other, theirs, got)
						}
					}
				}
			}
			for _, s := range []string{secretA, secretB} {
				if verifies(t, s, h, "body") {
					t.Errorf("%s of %q is signed with the secret itself", purpose, owner)
				}
			}
			all = append(all, signer.Secrets(owner)...)
		}
	}
	slices.Sort(all)
	if n := len(slices.Compact(all)); n != 2*2*len(owners) {
		t.Errorf("there are %d keys", n)
	}
}

func TestWithoutSecretsNothingIsSignedForAnOwner(t *testing.T) {
	t.Parallel()
	signer, h := outgoing(t, webhook.Call), http.Header{}
	signer.Sign(h, "acme", "id", time.Now(), []byte("body"))
	if len(signer.Secrets("acme")) != 0 || h.Get("webhook-signature") != "" || h.Get("webhook-id") != "id" {
		t.Errorf("signed %v", h)
	}
}
