package gateway_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/functions/gateway"
	"github.com/jobweaver/jobweaver/shared/apidb/keystore"
	"github.com/jobweaver/jobweaver/shared/apierror"
)

type shownKey struct {
	KeyID, Key, Name, CreatedBy      string
	OwnerID                          *string
	Roles                            []string
	ExpiresAt, RevokedAt, LastUsedAt *time.Time
}

func (r *response) key() (key shownKey) {
	r.t.Helper()
	r.into(&key)
	return key
}

func TestKeyIsCreatedUsedAndRevoked(t *testing.T) {
	t.Parallel()
	h := openLocked(t)
	admin := h.as("acme", "admin")
	made := admin.post("/api/keys", `{"name": "import", "roles": ["submit"]}`).want(http.StatusCreated)
	key := made.key()
	if key.Key == "" || *key.OwnerID != "acme" || key.CreatedBy != "key:"+admin.id() || made.header.Get("Location") != "/api/keys/"+key.KeyID {
		t.Fatalf("made %s", made.body)
	}
	user := &client{t: t, base: h.base, key: key.Key}
	user.post("/api/jobs", plainJob).want(http.StatusAccepted)
	if r := user.get("/api/jobs"); !strings.Contains(string(r.body), "needs the role read") {
		t.Errorf("got %s", r.body)
	}
	user.get("/api/jobs").wantError(apierror.Forbidden)
	user.post("/api/keys", `{"name": "more", "roles": ["submit"]}`).wantError(apierror.Forbidden)
	shown := admin.get("/api/keys/" + key.KeyID).want(http.StatusOK)
	if strings.Contains(string(shown.body), key.Key[16:]) || shown.key().RevokedAt != nil {
		t.Errorf("shown is %s", shown.body)
	}
	admin.do(http.MethodDelete, "/api/keys/"+key.KeyID, "").want(http.StatusOK)
	user.post("/api/jobs", plainJob).wantError(apierror.Unauthorized) // at once at the gateway that revoked it
	first := admin.get("/api/keys/" + key.KeyID).key().RevokedAt
	again := admin.do(http.MethodDelete, "/api/keys/"+key.KeyID, "").want(http.StatusOK).key().RevokedAt
	if first == nil || !again.Equal(*first) {
		t.Errorf("revoked at %v, then at %v", first, again)
	}
	var dump string
	h.sql("select string_agg(api_keys::text, ',') from api_keys", &dump)
	if strings.Contains(dump, key.Key[16:40]) {
		t.Error("the secret is stored")
	}
}

func (c *client) id() string { return c.key[3:15] }

func TestOwnersManageTheirOwnKeysAndTheInstallationAllKeys(t *testing.T) {
	t.Parallel()
	h := openLocked(t)
	boss, acme, other := h.as("", "admin"), h.as("acme", "admin"), h.as("other", "admin")
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		other.do(method, "/api/keys/"+acme.id(), "").wantError(apierror.NotFound)
	}
	other.post("/api/keys/"+acme.id()+"/rotate", "{}").wantError(apierror.NotFound)
	other.get("/api/keys/x").wantError(apierror.NotFound)
	other.post("/api/keys", `{"name": "a", "roles": ["read"], "ownerId": "acme"}`).wantError(apierror.Forbidden)
	list := func(c *client, query string) (ids []string) {
		var page struct{ Keys []shownKey }
		c.get("/api/keys" + query).want(http.StatusOK).into(&page)
		for _, key := range page.Keys {
			ids = append(ids, key.KeyID)
		}
		return ids
	}
	for _, c := range []struct {
		by    *client
		query string
		want  []string
	}{
		{acme, "", []string{acme.id()}}, {acme, "?ownerId=acme", []string{acme.id()}}, {acme, "?ownerId=other", nil},
		{boss, "", []string{boss.id(), acme.id(), other.id()}}, {boss, "?ownerId=other", []string{other.id()}},
	} {
		if got := list(c.by, c.query); !slices.Equal(got, c.want) {
			t.Errorf("the list %s has %v, want %v", c.query, got, c.want)
		}
	}
	var acting struct{ Keys []shownKey }
	boss.get("/api/keys", "X-Owner-Id", "acme").want(http.StatusOK).into(&acting)
	if len(acting.Keys) != 1 || acting.Keys[0].KeyID != acme.id() {
		t.Errorf("acting for an owner the list is %+v", acting)
	}
	made := boss.post("/api/keys", `{"name": "a", "roles": ["read"], "ownerId": "acme"}`).want(http.StatusCreated).key()
	if *made.OwnerID != "acme" {
		t.Errorf("made for %s", *made.OwnerID)
	}
	if own := boss.post("/api/keys", `{"name": "a", "roles": ["read"]}`).want(http.StatusCreated).key(); own.OwnerID != nil {
		t.Errorf("made for %s", *own.OwnerID)
	}
	boss.do(http.MethodDelete, "/api/keys/"+other.id(), "").want(http.StatusOK)
	other.get("/api/jobs").wantError(apierror.Unauthorized)
}

func TestKeysAreListedPageByPage(t *testing.T) {
	t.Parallel()
	h := openLocked(t)
	boss := h.as("", "admin")
	for n := range 7 {
		h.as(fmt.Sprintf("owner-%d", n/3), "read")
	}
	var owners []string
	for path := "/api/keys?limit=3"; path != ""; {
		var page struct {
			Keys       []shownKey
			NextCursor *string
		}
		boss.get(path).want(http.StatusOK).into(&page)
		for _, key := range page.Keys {
			if key.OwnerID != nil {
				owners = append(owners, *key.OwnerID)
			}
		}
		if path = ""; page.NextCursor != nil {
			path = "/api/keys?limit=3&cursor=" + *page.NextCursor
		}
	}
	if want := []string{"owner-0", "owner-0", "owner-0", "owner-1", "owner-1", "owner-1", "owner-2"}; !slices.Equal(owners, want) {
		t.Errorf("listed are keys of %v", owners)
	}
	boss.get("/api/keys?cursor=x").wantError(apierror.InvalidJobRequest, "cursor")
}

func TestRotatedKeyWorksDuringTheOverlap(t *testing.T) {
	t.Parallel()
	h := openLocked(t)
	admin := h.as("acme", "admin")
	old := h.as("acme", "read", "submit")
	made := admin.post("/api/keys/"+old.id()+"/rotate", `{"overlapSeconds": 3600}`).want(http.StatusCreated).key()
	next := &client{t: t, base: h.base, key: made.Key}
	if made.Key == old.key || made.KeyID == old.id() || !slices.Equal(made.Roles, []string{"read", "submit"}) || made.ExpiresAt != nil {
		t.Errorf("made %+v", made)
	}
	old.get("/api/jobs").want(http.StatusOK)
	next.get("/api/jobs").want(http.StatusOK)
	if at := admin.get("/api/keys/" + old.id()).key().ExpiresAt; at == nil || time.Until(*at) > time.Hour || time.Until(*at) < 50*time.Minute {
		t.Errorf("the old one expires at %v", at)
	}
	admin.post("/api/keys/"+next.id()+"/rotate", `{"overlapSeconds": 0}`).want(http.StatusCreated)
	next.get("/api/jobs").wantError(apierror.Unauthorized)
	admin.post("/api/keys/"+next.id()+"/rotate", `{}`).wantError(apierror.InvalidStateTransition)
	until := time.Now().Add(time.Hour)
	brief := h.key(keystore.Key{OwnerID: "acme", Roles: []string{"read"}, ExpiresAt: &until})
	again := admin.do(http.MethodPost, "/api/keys/"+brief.ID()+"/rotate", "").want(http.StatusCreated).key()
	if again.ExpiresAt == nil || time.Until(*again.ExpiresAt) > 61*time.Minute {
		t.Errorf("a key for an hour is followed by one until %v", again.ExpiresAt)
	}
}

func TestKeysLiveNoLongerThanTheMaximumAge(t *testing.T) {
	t.Parallel()
	const most = 100 * time.Hour
	h := openWith(t, func(cfg *gateway.Config) { cfg.Auth, cfg.KeyMaxAge = gateway.AuthOn, most })
	admin := h.as("acme", "admin")
	expires := func(at *time.Time, want time.Duration) {
		t.Helper()
		if at == nil || time.Until(*at) > want+time.Second || time.Until(*at) < want-time.Minute {
			t.Errorf("it expires at %v, not in %s", at, want)
		}
	}
	request := func(lives time.Duration) string {
		return fmt.Sprintf(`{"name": "a", "roles": ["read"], "expiresAt": %q}`, time.Now().Add(lives).Format(time.RFC3339))
	}
	made := admin.post("/api/keys", `{"name": "a", "roles": ["read"]}`).want(http.StatusCreated).key()
	expires(made.ExpiresAt, most)
	expires(admin.post("/api/keys", request(time.Hour)).want(http.StatusCreated).key().ExpiresAt, time.Hour)
	admin.post("/api/keys", request(most)).want(http.StatusCreated)
	admin.post("/api/keys", request(most+time.Hour)).wantError(apierror.InvalidJobRequest, "expiresAt")

	eternal := h.as("acme", "read") // made before the setting
	eternal.get("/api/jobs").want(http.StatusOK)
	rotate := func(id string) *time.Time {
		t.Helper()
		return admin.do(http.MethodPost, "/api/keys/"+id+"/rotate", "").want(http.StatusCreated).key().ExpiresAt
	}
	expires(rotate(eternal.id()), most)
	long, brief := time.Now().Add(1000*time.Hour), time.Now().Add(time.Hour)
	id := func(until time.Time) string {
		key := h.key(keystore.Key{OwnerID: "acme", Roles: []string{"read"}, ExpiresAt: &until})
		return key.ID()
	}
	expires(rotate(id(long)), most)
	expires(rotate(id(brief)), time.Hour)
}

func TestMeReturnsTheIdentityOfAKey(t *testing.T) {
	t.Parallel()
	h := openLocked(t)
	type me struct {
		Actor, OwnerID string
		Roles          []string
		Installation   bool
	}
	ask := func(c *client, headers ...string) (who me) {
		c.get("/api/me", headers...).want(http.StatusOK).into(&who)
		return who
	}
	boss, user := h.as("", "admin"), h.as("acme", "submit")
	for _, c := range []struct{ got, want me }{
		{ask(user), me{Actor: "key:" + user.id(), OwnerID: "acme", Roles: []string{"submit"}}},
		{ask(boss), me{Actor: "key:" + boss.id(), Roles: []string{"admin"}, Installation: true}},
		{ask(boss, "X-Owner-Id", "acme"), me{Actor: "key:" + boss.id(), OwnerID: "acme", Roles: []string{"admin"}}},
		{ask(open(t).client), me{Actor: "anonymous", Roles: []string{"admin"}, Installation: true}},
		{ask(open(t).client, "X-Owner-Id", "acme"), me{Actor: "anonymous", OwnerID: "acme", Roles: []string{"admin"}}},
	} {
		if fmt.Sprint(c.got) != fmt.Sprint(c.want) {
			t.Errorf("me is %+v, want %+v", c.got, c.want)
		}
	}
}

func TestMeHasTheAddressOfTraces(t *testing.T) {
	t.Parallel()
	const address = "https://jaeger.example.org/trace/{traceId}"
	var me struct{ TraceURL *string }
	open(t).get("/api/me").want(http.StatusOK).into(&me)
	if me.TraceURL != nil {
		t.Errorf("without TRACE_URL: %s", *me.TraceURL)
	}
	h := openWith(t, func(cfg *gateway.Config) { cfg.TraceURL = address })
	h.get("/api/me").want(http.StatusOK).into(&me)
	if me.TraceURL == nil || *me.TraceURL != address {
		t.Errorf("with TRACE_URL: %v", me.TraceURL)
	}
}

func TestInvalidKeyRequestCreatesNoKey(t *testing.T) {
	t.Parallel()
	h := openLocked(t)
	admin := h.as("acme", "admin")
	admin.post("/api/keys", `{"name": "a", "roles": ["root"]}`).wantError(apierror.InvalidJobRequest, "roles[0]")
	admin.post("/api/keys", `{"name": "a", "roles": ["read"], "expiresAt": "2020-01-01T00:00:00Z"}`).wantError(apierror.InvalidJobRequest, "expiresAt")
	h.sql(`insert into api_keys (key_id, owner_id, name, roles, secret_hash, created_by)
		select lpad(n::text, 12, 'x'), 'acme', 'x', '{read}', sha256(n::text::bytea), 'x' from generate_series(1, 999) n`, nil)
	admin.post("/api/keys", `{"name": "a", "roles": ["read"]}`).wantError(apierror.InvalidJobRequest)
	var n int
	if h.sql("select count(*) from api_keys", &n); n != 1000 {
		t.Errorf("there are %d keys", n)
	}
}
