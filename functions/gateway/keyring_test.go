package gateway_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/jobweaver/jobweaver/functions/gateway"
	"github.com/jobweaver/jobweaver/functions/gateway/access"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/keystore"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/apikey"
	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/secret"
)

// Ten thousand invalid keys are tried while a client uses a valid one.
func TestWrongKeysDoNotReachTheDatabaseOneByOne(t *testing.T) {
	t.Parallel()
	h := openLocked(t)
	h.as("acme", "read").get("/api/jobs").want(http.StatusOK)
	good := h.key(keystore.Key{OwnerID: "acme", Roles: []string{"read"}})
	gate := &access.Gate{Keys: access.NewKeyring(h.store.Keys)}
	running := make(chan struct{})
	go func() { gate.Keys.Run(t.Context()); close(running) }()
	t.Cleanup(func() { <-running })
	before := h.reads()
	var refused, busy atomic.Int64
	try := func(key apikey.Key) error {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/jobs", nil)
		r.Header.Set("X-Api-Key", key.Reveal())
		for {
			if _, err := gate.Authenticate(r, unsuspected); !pgpool.IsUnavailable(err) { // the database may be away for a while on a busy machine
				return err
			}
		}
	}
	var all errgroup.Group
	for range 1000 {
		all.Go(func() error {
			for range 10 {
				err := try(apikey.New())
				switch {
				case err == nil:
					return fmt.Errorf("an invalid key is accepted")
				case strings.Contains(err.Error(), string(apierror.Unauthorized)):
					refused.Add(1)
				default:
					busy.Add(1)
				}
			}
			return nil
		})
	}
	for range 100 {
		if err := try(good); err != nil {
			t.Errorf("a good key is refused: %v", err)
		}
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
	if n := h.reads() - before; refused.Load() != 10_000 || n > 500 {
		t.Errorf("%d were refused, %d turned away, with %d statements", refused.Load(), busy.Load(), n)
	}
}

// reads counts the transactions of the database; each statement of the keyring is one.
func (h *fixture) reads() (n int) {
	h.t.Helper()
	h.sql("select pg_stat_force_next_flush()", nil)
	h.sql("select xact_commit from pg_stat_database where datname = current_database()", &n)
	return n
}

// A key that is revoked by another gateway or in the database works for at most 10 s. That limit is a promise, so this
// test waits for it.
func TestKeyRevokedElsewhereWorksForTenSecondsAtMost(t *testing.T) {
	t.Parallel()
	h := openLocked(t)
	c := h.as("acme", "read")
	c.get("/api/jobs").want(http.StatusOK)
	h.sql("update api_keys set revoked_at = now() where key_id = $1", nil, c.id())
	revoked := time.Now()
	for asked := time.Now(); c.get("/api/me").status == http.StatusOK; asked = time.Now() {
		if asked.Sub(revoked) > 11*time.Second {
			t.Fatal("it is still good")
		}
		<-time.After(50 * time.Millisecond)
	}
	c.get("/api/me").wantError(apierror.Unauthorized)
}

// A valid key is not reported as invalid because the database is away.
func TestWithoutTheDatabaseAKeyIsNotReportedAsInvalid(t *testing.T) {
	t.Parallel()
	h := openCuttable(t, func(cfg *gateway.Config) { cfg.Auth = gateway.AuthOn })
	known, unknown := h.as("acme", "read"), h.as("acme", "read")
	known.get("/api/me").want(http.StatusOK)
	h.cut()
	known.get("/api/me").want(http.StatusOK)
	unknown.get("/api/me").wantError(apierror.Unavailable)
	h.get("/api/me", "X-Api-Key", "jw_wrong").wantError(apierror.Unauthorized)
	(&client{t: t, base: h.base}).get("/api/me").wantError(apierror.Unauthorized)
}

// With AUTH on, a job costs as many statements as without.
func TestAKnownKeyCostsNoStatement(t *testing.T) {
	t.Parallel()
	h := openLocked(t)
	c := h.as("acme", "submit")
	c.get("/api/me").want(http.StatusOK)
	before := h.reads()
	for range 100 {
		c.get("/api/me").want(http.StatusOK)
	}
	// Some belong to the gateway itself, the more of them the longer the requests take.
	if n := h.reads() - before; n >= 100 {
		t.Errorf("100 requests had %d statements", n)
	}
}

func TestUseOfAKeyIsStored(t *testing.T) {
	t.Parallel()
	h := openLocked(t)
	used, wrong := h.as("acme", "read"), apikey.New()
	used.get("/api/me").want(http.StatusOK)
	h.sql("insert into api_keys (key_id, owner_id, name, roles, secret_hash, created_by) values ($1, '', 'x', '{admin}', sha256('x'), 'x')", nil, wrong.ID())
	h.get("/api/me", "X-Api-Key", wrong.Reveal()).wantError(apierror.Unauthorized)
	h.stop() // Run stores the use of keys when it ends
	var at *time.Time
	h.sql("select last_used_at from api_keys where key_id = $1", &at, used.id())
	if at == nil || time.Since(*at) > time.Minute {
		t.Errorf("last used at %v", at)
	}
	if h.sql("select last_used_at from api_keys where key_id = $1", &at, wrong.ID()); at != nil {
		t.Errorf("an invalid key was used at %v", at)
	}
}

func TestBootstrapKeyHasTheRoleAdmin(t *testing.T) {
	t.Parallel()
	key := apikey.New()
	h := openWith(t, func(cfg *gateway.Config) { cfg.Auth, cfg.BootstrapKey = gateway.AuthOn, secret.Of(key.Reveal()) })
	c := &client{t: t, base: h.base, key: key.Reveal()}
	if err := h.ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.get("/api/keys").want(http.StatusOK) // the first client
	made := c.log("action=key.create")     // the log shows who used the bootstrap key
	if len(made) != 1 || inWords(made[0]) != "key.create key/"+key.ID()+" 0" || made[0].Actor != "bootstrap" {
		t.Errorf("the log has %+v", made)
	}
	c.do(http.MethodDelete, "/api/keys/"+key.ID(), "").want(http.StatusOK)
	hash := key.Hash()
	if kept, err := h.store.Keys.EnsureAdmin(t.Context(), key.ID(), hash[:], "x"); err != nil || kept.RevokedAt == nil {
		t.Errorf("the next start has it as %+v, %v", kept, err)
	}
	if n := h.sqlInt("SELECT count(*) FROM audit_log WHERE action = 'key.create'"); n != 1 {
		t.Errorf("the key that was there already is entered, too: %d entries", n)
	}
}

func TestGatewayIsNotReadyBeforeItsBootstrapKeyIsStored(t *testing.T) {
	t.Parallel()
	h := open(t)
	f := mustNew(t, gateway.Config{BootstrapKey: secret.Of(apikey.New().Reveal())}, h.store.Store) // a keyring whose Run is never called
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.Host().Ready(ctx); err == nil || !strings.Contains(err.Error(), "BOOTSTRAP_API_KEY") {
		t.Errorf("ready: %v", err)
	}
}

func TestInvalidAuthSettingPreventsTheStart(t *testing.T) {
	t.Parallel()
	for want, cfg := range map[string]gateway.Config{
		"AUTH: ":              {Auth: "maybe"},
		"BOOTSTRAP_API_KEY: ": {BootstrapKey: secret.Of("jw_canary")},
		"OIDC_AUDIENCE: ":     {OIDC: access.OIDCConfig{Issuer: "https://example.org"}},
		"OIDC_ISSUER: ":       {OIDC: access.OIDCConfig{Issuer: "http://example.org", Audience: "a"}},
		"OIDC_ISSUER: is not set, and OIDC_AUDIENCE is":  {OIDC: access.OIDCConfig{Audience: "a"}},
		"OIDC_ISSUER: is not set, and OIDC_ROLES is":     {OIDC: access.OIDCConfig{Roles: []string{"read"}}},
		"OIDC_ISSUER: is not set, and OIDC_CLIENT_ID is": {OIDC: access.OIDCConfig{ClientID: "page"}},
		"OIDC_SCOPES: ": {OIDC: access.OIDCConfig{Issuer: "https://example.org", Audience: "a", ClientID: "page", Scopes: []string{"profile"}}},
		"KEY_MAX_AGE: ": {KeyMaxAge: -time.Second},
		"OIDC_ROLES: ":  {OIDC: access.OIDCConfig{Issuer: "https://example.org", Audience: "a", Roles: []string{"root"}}},
	} {
		if _, err := gateway.New(cfg, &apidb.Store{}); err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s%v", want, err)
		}
	}
}

func unsuspected() bool { return false }
