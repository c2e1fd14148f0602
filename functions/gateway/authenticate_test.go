package gateway_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/keystore"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/apikey"
)

// allowedRoles has the roles that may call the operations of each x-role.
var lets = map[string][]string{
	"public":       {"anonymous", "submit", "read", "operate", "admin", "installation"},
	"known":        {"submit", "read", "operate", "admin", "installation"},
	"submit":       {"submit", "operate", "admin", "installation"},
	"read":         {"read", "operate", "admin", "installation"},
	"operate":      {"operate", "admin", "installation"},
	"work":         {"admin", "installation"},
	"admin":        {"admin", "installation"},
	"installation": {"installation"},
}

// Each operation of the contract is called with each role: only the roles of its x-role may call it, whatever else is
// wrong with the request.
func TestEachOperationAllowsOnlyItsRole(t *testing.T) {
	t.Parallel()
	h := openLocked(t)
	visitors := map[string]string{"anonymous": "", "installation": h.as("", "admin").key}
	for _, role := range []string{"submit", "read", "operate", "admin"} {
		visitors[role] = h.as("acme", role).key
	}
	strangers := h.strangers()
	doc := loadContract(t)
	tried := 0
	for path, item := range doc.Paths.Map() {
		if strings.HasPrefix(path, "/health/") {
			continue // served by the host
		}
		for method, op := range item.Operations() {
			role, _ := op.Extensions["x-role"].(string)
			allowed, known := lets[role]
			if open := op.Security != nil && len(*op.Security) == 0; !known || open != (role == "public") {
				t.Errorf("%s %s has role %q, and is open: %v", method, path, role, open)
			}
			if path == "/metrics" {
				allowed = lets["installation"] // they cover all owners
			}
			if op.OperationID == "runJobAgain" {
				allowed = lets["operate"] // it needs both submit and read
			}
			tried++
			at := concrete(path)
			for name, key := range visitors {
				r := (&client{t: t, base: h.base, key: key}).do(method, at, "")
				ownSecret := path == "/api/jobs/callback" || path == "/hooks/{name}" // it is not a key
				if got := ownSecret || r.status != http.StatusUnauthorized && r.status != http.StatusForbidden; got != slices.Contains(allowed, name) {
					t.Errorf("%s %s answers %d to %s", method, path, r.status, name)
				}
				if (r.status == http.StatusUnauthorized) != (r.header.Get("WWW-Authenticate") == "Bearer") {
					t.Errorf("%s %s answers %d, WWW-Authenticate %q", method, path, r.status, r.header.Get("WWW-Authenticate"))
				}
			}
			if role == "public" {
				continue
			}
			for name, headers := range strangers {
				r := h.do(method, at, "", headers...)
				if r.status != http.StatusUnauthorized || r.error().Message != notValid {
					t.Errorf("%s %s answers %d to %s: %s", method, path, r.status, name, r.body)
				}
			}
		}
	}
	if tried < 40 {
		t.Errorf("only %d operations were tried", tried)
	}
}

// notValid does not reveal what is wrong with a key.
const notValid = "the API key or token is not valid; send the header 'Authorization: Bearer KEY_OR_TOKEN', or 'X-Api-Key: KEY'"

// concrete returns a path to a resource that does not exist, so that an allowed request changes nothing.
func concrete(path string) string {
	return strings.NewReplacer("{jobId}", uuid.NewString(), "{operationId}", uuid.NewString(), "{batchId}", uuid.NewString(), "{flowId}", uuid.NewString(), "{version}", "1", "{kind}", "none",
		"{type}", "NONE", "{keyId}", "aaaaaaaaaaaa", "{queue}", "default").Replace(path)
}

// strangers are the headers of all kinds of requests without a valid key.
func (h *fixture) strangers() map[string][]string {
	h.t.Helper()
	long := time.Now().Add(-time.Minute)
	good := h.as("acme", "admin").key
	revoked := h.key(keystore.Key{OwnerID: "acme", Roles: []string{"admin"}})
	if _, err := h.store.Keys.Revoke(h.t.Context(), nil, apidb.Everyone, revoked.ID()); err != nil {
		h.t.Fatal(err)
	}
	bearer := func(key string) []string { return []string{"Authorization", "Bearer " + key} }
	wrong := apikey.New()
	h.sql("insert into api_keys (key_id, owner_id, name, roles, secret_hash, created_by) values ($1, '', 'x', '{admin}', sha256('x'), 'x')", nil, wrong.ID())
	return map[string][]string{
		"an expired key":          bearer(h.key(keystore.Key{OwnerID: "acme", Roles: []string{"admin"}, ExpiresAt: &long}).Reveal()),
		"a revoked key":           bearer(revoked.Reveal()),
		"a key there never was":   bearer(apikey.New().Reveal()),
		"a key of another secret": bearer(wrong.Reveal()),
		"a word":                  bearer("secret"),
		"nothing":                 bearer(""),
		"another scheme":          {"Authorization", "Basic " + good},
		"no scheme":               {"Authorization", good},
		"two keys":                {"Authorization", "Bearer " + good, "X-Api-Key", good},
		"a bearer as a key":       {"X-Api-Key", "Bearer " + good},
		"a part of a key":         bearer(good[:20]),
		"a key in big letters":    bearer(strings.ToUpper(good)),
		"a token of no issuer":    bearer("eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIn0."),
	}
}

func TestKeyIsAcceptedInEitherHeader(t *testing.T) {
	t.Parallel()
	h := openLocked(t)
	key := h.as("acme", "read").key
	for _, headers := range [][]string{{"Authorization", "Bearer " + key}, {"Authorization", "bearer " + key}, {"X-Api-Key", key}} {
		h.get("/api/jobs", headers...).want(http.StatusOK)
	}
}

func TestKeyInTheAddressIsRefusedWhateverTheHeader(t *testing.T) {
	t.Parallel()
	h := openLocked(t)
	c := h.as("acme", "admin")
	for _, query := range []string{"api_key=" + c.key, "tag=" + c.key, "x=1&access_token=jw%5F" + c.key[3:], "key=" + apikey.New().Reveal()} {
		for _, who := range []*client{c, h.client} {
			r := who.get("/api/jobs?" + query)
			r.wantError(apierror.Unauthorized)
			if strings.Contains(string(r.body), c.key[16:]) {
				t.Error("the response repeats the key")
			}
		}
	}
	c.get("/api/jobs?tag=jw_no-key").want(http.StatusOK)
}

func TestOnlyAnAdminOfTheInstallationActsForAnOwner(t *testing.T) {
	t.Parallel()
	h := openLocked(t)
	const header = "X-Owner-Id"
	boss := h.as("", "admin")
	boss.get("/api/jobs", header, "acme").want(http.StatusOK)
	boss.get("/api/jobs", header, "").want(http.StatusOK)
	boss.get("/api/jobs", header, strings.Repeat("x", 256)).wantError(apierror.Forbidden)
	for _, c := range []*client{h.as("", "operate"), h.as("", "read"), h.as("acme", "admin")} {
		c.get("/api/jobs", header, "other").wantError(apierror.Forbidden)
	}
	h.as("acme", "read").get("/api/jobs", header, "acme").want(http.StatusOK)
}
