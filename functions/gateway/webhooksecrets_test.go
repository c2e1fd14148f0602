package gateway_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/jobweaver/jobweaver/functions/gateway"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/secret"
	"github.com/jobweaver/jobweaver/shared/webhook"
)

type webhookSecrets struct {
	OwnerID   *string
	End, Call []string
}

// An owner's admin gets only the keys of its own receivers.
func TestAdminOfAnOwnerSeesItsOwnWebhookSecrets(t *testing.T) {
	t.Parallel()
	cfg := webhook.Config{Secrets: secret.AllOf("whsec_"+strings.Repeat("a", 44), "whsec_"+strings.Repeat("b", 44))}
	h := openWith(t, func(c *gateway.Config) { c.Auth, c.Webhook = gateway.AuthOn, cfg })
	boss, acme := h.as("", "admin"), h.as("acme", "admin")
	want := func(owner string) webhookSecrets {
		var of [2][]string
		for i, purpose := range []webhook.Purpose{webhook.End, webhook.Call} {
			keys, err := webhook.NewOutgoing(cfg, purpose)
			if err != nil {
				t.Fatal(err)
			}
			of[i] = keys.Secrets(owner)
		}
		return webhookSecrets{&owner, of[0], of[1]}
	}
	for _, c := range []struct {
		by           *client
		query, owner string
		header       []string
	}{
		{acme, "", "acme", nil}, {acme, "?ownerId=acme", "acme", nil}, {boss, "?ownerId=other", "other", nil},
		{boss, "", "acme", []string{"X-Owner-Id", "acme"}}, {boss, "", "", nil},
	} {
		var got webhookSecrets
		c.by.get("/api/webhook-secrets"+c.query, c.header...).want(http.StatusOK).into(&got)
		want := want(c.owner)
		if !slices.Equal(got.End, want.End) || !slices.Equal(got.Call, want.Call) || len(got.End) != 2 ||
			(got.OwnerID == nil) != (c.owner == "") || got.OwnerID != nil && *got.OwnerID != c.owner {
			t.Errorf("%s of %q: %+v, not %+v", c.query, c.owner, got, want)
		}
	}
	acme.get("/api/webhook-secrets?ownerId=other").wantError(apierror.Forbidden)
	boss.get("/api/webhook-secrets?ownerId=other", "X-Owner-Id", "acme").wantError(apierror.Forbidden)
	h.as("acme", "operate").get("/api/webhook-secrets").wantError(apierror.Forbidden)
	if entries := boss.log("action=webhook-secrets.read&ownerId=other"); len(entries) != 1 || *entries[0].OwnerID != "other" {
		t.Errorf("of the one time that other's were read the audit log has %+v", entries)
	}
	if entries := acme.log("action=webhook-secrets.read"); len(entries) != 3 {
		t.Errorf("of the three times that acme's were read the audit log has %+v", entries)
	}
}
