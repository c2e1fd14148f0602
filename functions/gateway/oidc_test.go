package gateway_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/jobweaver/jobweaver/functions/gateway"
	"github.com/jobweaver/jobweaver/functions/gateway/access"
	"github.com/jobweaver/jobweaver/shared/apierror"
)

// issuer is an OpenID Connect issuer with its own keys.
type issuer struct {
	*httptest.Server
	t *testing.T

	mu     sync.Mutex
	keys   map[string]crypto.Signer
	tokens string // the token endpoint
	asked  int    // counts the requests for its keys
	away   bool
}

func startIssuer(t *testing.T) *issuer {
	t.Helper()
	i := &issuer{t: t, keys: map[string]crypto.Signer{"first": rsaKey(t)}}
	i.Server = httptest.NewServer(i)
	i.tokens = i.URL + "/token"
	t.Cleanup(i.Close)
	return i
}

func rsaKey(t *testing.T) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (i *issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case i.away:
		http.Error(w, "away", http.StatusBadGateway)
	case r.URL.Path == "/.well-known/openid-configuration":
		_ = json.NewEncoder(w).Encode(map[string]any{
			"issuer": i.URL, "jwks_uri": i.URL + "/keys", "authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.tokens,
		})
	case r.URL.Path == "/keys":
		i.asked++
		var set jose.JSONWebKeySet
		for id, key := range i.keys {
			set.Keys = append(set.Keys, jose.JSONWebKey{Key: key.Public(), KeyID: id, Use: "sig"})
		}
		_ = json.NewEncoder(w).Encode(set)
	default:
		http.NotFound(w, r)
	}
}

func (i *issuer) set(change func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	change()
}

// claims returns the claims of a valid token, with some replaced; nil removes one.
func (i *issuer) claims(others map[string]any) map[string]any {
	claims := map[string]any{
		"iss": i.URL, "sub": "ada", "aud": "jobweaver", "exp": time.Now().Add(time.Hour).Unix(),
		"iat": time.Now().Unix(), "owner": "acme", "roles": []string{"read", "viewer"},
	}
	maps.Copy(claims, others)
	maps.DeleteFunc(claims, func(_ string, value any) bool { return value == nil })
	return claims
}

func sign(t *testing.T, alg jose.SignatureAlgorithm, kid string, key any, claims map[string]any) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key}, (&jose.SignerOptions{}).WithHeader("kid", kid))
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign(body)
	if err != nil {
		t.Fatal(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func (i *issuer) token(others map[string]any) string {
	i.t.Helper()
	return sign(i.t, jose.RS256, "first", i.keys["first"], i.claims(others))
}

func openFor(t *testing.T, i *issuer, change func(*access.OIDCConfig)) *fixture {
	t.Helper()
	return openWith(t, func(cfg *gateway.Config) {
		cfg.Auth, cfg.Limits.AuthFailureLimit = gateway.AuthOn, 1_000_000
		cfg.OIDC = access.OIDCConfig{Issuer: i.URL, Audience: "jobweaver"}
		if change != nil {
			change(&cfg.OIDC)
		}
	})
}

func (h *fixture) with(token string) *client { return &client{t: h.t, base: h.base, key: token} }

func TestTokenHasItsOwnerAndRoles(t *testing.T) {
	t.Parallel()
	i := startIssuer(t)
	h := openFor(t, i, nil)
	c := h.with(i.token(nil))
	c.get("/api/jobs").want(http.StatusOK)
	c.post("/api/jobs", plainJob).wantError(apierror.Forbidden)
	h.with(i.token(map[string]any{"roles": "submit read"})).post("/api/jobs", plainJob).want(http.StatusAccepted)
	var me struct{ Actor, OwnerID string }
	c.get("/api/me").want(http.StatusOK).into(&me)
	if me.Actor != "oidc:ada" || me.OwnerID != "acme" {
		t.Errorf("me is %+v", me)
	}
	c.get("/api/jobs", "X-Owner-Id", "other").wantError(apierror.Forbidden)
	h.as("acme", "read").get("/api/jobs").want(http.StatusOK) // keys still work
	for name, claims := range map[string]map[string]any{
		"no owner": {"owner": nil}, "an empty owner": {"owner": ""}, "owners": {"owner": []string{"acme"}}, "no roles": {"roles": nil},
		"roles of others": {"roles": []string{"viewer", "ADMIN"}}, "a role that is none": {"roles": []string{"installation"}},
	} {
		if r := h.with(i.token(claims)).get("/api/jobs"); r.status != http.StatusForbidden {
			t.Errorf("%s: answered %d", name, r.status)
		}
	}
	h.with(i.token(map[string]any{"roles": "admin"})).get("/api/keys").want(http.StatusOK)
}

func TestInvalidTokenIsUnauthorized(t *testing.T) {
	t.Parallel()
	i := startIssuer(t)
	h := openFor(t, i, nil)
	part := func(claims any) string {
		text, err := json.Marshal(claims)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(text)
	}
	own := i.keys["first"].(*rsa.PrivateKey)
	good := i.token(nil)
	parts := strings.Split(good, ".")
	for name, token := range map[string]string{
		"another audience":            i.token(map[string]any{"aud": "other"}),
		"no audience":                 i.token(map[string]any{"aud": nil}),
		"another issuer":              i.token(map[string]any{"iss": "https://example.org"}),
		"expired":                     i.token(map[string]any{"exp": time.Now().Add(-time.Second).Unix()}),
		"without an end":              i.token(map[string]any{"exp": nil}),
		"not yet valid":               i.token(map[string]any{"nbf": time.Now().Add(time.Hour).Unix()}),
		"no subject":                  i.token(map[string]any{"sub": nil}),
		"a subject that is no name":   i.token(map[string]any{"sub": "a\nb"}),
		"a key of another issuer":     sign(t, jose.RS256, "first", rsaKey(t), i.claims(nil)),
		"an unknown key":              sign(t, jose.RS256, "other", rsaKey(t), i.claims(nil)),
		"no algorithm":                part(map[string]any{"alg": "none", "kid": "first"}) + "." + part(i.claims(nil)) + ".",
		"the public key as a secret":  sign(t, jose.HS256, "first", own.N.Bytes(), i.claims(nil)),
		"other claims under the same": parts[0] + "." + part(i.claims(map[string]any{"owner": "other"})) + "." + parts[2],
		"no signature":                parts[0] + "." + parts[1] + ".",
		"too long":                    i.token(map[string]any{"x": strings.Repeat("x", 17<<10)}),
		"no token":                    "a.b.c",
	} {
		r := h.with(token).get("/api/jobs")
		if name == "too long" && r.status == http.StatusRequestHeaderFieldsTooLarge {
			continue
		}
		if r.status != http.StatusUnauthorized || r.header.Get("WWW-Authenticate") != "Bearer" {
			t.Errorf("%s: answered %d: %s", name, r.status, r.body)
		}
	}
	h.with(good).get("/api/jobs").want(http.StatusOK)
}

// An issuer may change its keys at any time. A new key is accepted at once, and a thousand bad tokens do not cause a
// thousand requests to the issuer.
func TestNewKeysOfAnIssuerAreAccepted(t *testing.T) {
	t.Parallel()
	began := time.Now()
	i := startIssuer(t)
	h := openFor(t, i, nil)
	h.with(i.token(nil)).get("/api/jobs").want(http.StatusOK)
	second, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i.set(func() { i.keys["second"] = second })
	h.with(sign(t, jose.ES256, "second", second, i.claims(nil))).get("/api/jobs").want(http.StatusOK)
	stranger := sign(t, jose.ES256, "third", second, i.claims(nil))
	for range 300 {
		h.with(stranger).get("/api/jobs").wantError(apierror.Unauthorized)
	}
	i.set(func() {
		if i.asked > 4+int(time.Since(began)/(2*time.Second)) { // four calls at once, and then one every 2 s
			t.Errorf("the issuer was asked for its keys %d times", i.asked)
		}
		i.away = true
	})
	h.with(i.token(nil)).get("/api/jobs").want(http.StatusOK) // its keys are cached
}

func TestAnIssuerMayBeAwayAtTheStart(t *testing.T) {
	t.Parallel()
	i := startIssuer(t)
	i.set(func() { i.away = true })
	h := openFor(t, i, nil)
	h.with(i.token(nil)).get("/api/jobs").wantError(apierror.Unavailable)
	h.as("acme", "read").get("/api/jobs").want(http.StatusOK)
	i.set(func() { i.away = false })
	eventually(t, "a token is accepted", func() bool {
		return h.with(i.token(nil)).get("/api/jobs").status == http.StatusOK
	})
}

// The claims of Kubernetes service accounts, and those of Keycloak.
func TestClaimsMayBeNested(t *testing.T) {
	t.Parallel()
	i := startIssuer(t)
	h := openFor(t, i, func(cfg *access.OIDCConfig) {
		cfg.OwnerClaim, cfg.RolesClaim, cfg.Roles = "/kubernetes.io/namespace", "/realm_access/roles", []string{"submit"}
	})
	space := map[string]any{"kubernetes.io": map[string]any{"namespace": "shop"}, "sub": "system:serviceaccount:shop:source"}
	c := h.with(i.token(space))
	c.post("/api/jobs", plainJob).want(http.StatusAccepted)
	c.get("/api/jobs").wantError(apierror.Forbidden)
	space["realm_access"] = map[string]any{"roles": []string{"offline", "read"}}
	h.with(i.token(space)).get("/api/jobs").want(http.StatusOK)
	h.with(i.token(map[string]any{"kubernetes.io": "x"})).get("/api/jobs").wantError(apierror.Forbidden)
}

// login returns how users log in, and the origins to which the dashboard may connect.
func (c *client) login() (r *response, connect string) {
	c.t.Helper()
	_, connect, _ = strings.Cut(c.get("/").want(http.StatusOK).header.Get("Content-Security-Policy"), "connect-src ")
	connect, _, _ = strings.Cut(connect, ";")
	return c.get("/api/login"), connect
}

func TestUsersLogInAtTheIssuer(t *testing.T) {
	t.Parallel()
	i := startIssuer(t)
	for client, token := range map[string]string{"jobweaver": "id_token", "dashboard": "access_token"} {
		h := openFor(t, i, func(cfg *access.OIDCConfig) { cfg.ClientID = client })
		r, connect := h.with("").login()
		if want := `{"auth":"on","oidc":{"issuer":"` + i.URL + `","clientId":"` + client + `","authorizationEndpoint":"` + i.URL + `/authorize",` +
			`"tokenEndpoint":"` + i.URL + `/token","scopes":["openid"],"token":"` + token + `"}}`; string(r.want(http.StatusOK).body) != want {
			t.Errorf("answered %s", r.body)
		}
		if connect != "'self' "+i.URL {
			t.Errorf("the dashboard may ask %s", connect)
		}
	}
}

func TestTokenEndpointMayHaveAnotherOrigin(t *testing.T) {
	t.Parallel()
	i := startIssuer(t)
	i.set(func() { i.tokens = "https://tokens.example.org:8443/t" })
	h := openFor(t, i, func(cfg *access.OIDCConfig) { cfg.ClientID = "dashboard" })
	if _, connect := h.login(); connect != "'self' "+i.URL+" https://tokens.example.org:8443" {
		t.Errorf("the dashboard may ask %s", connect)
	}
	for _, bad := range []string{"javascript:alert(1)", "http://tokens.example.org/", "https://a;script-src *", "", "/token"} {
		i.set(func() { i.tokens = bad })
		h := openFor(t, i, func(cfg *access.OIDCConfig) { cfg.ClientID = "dashboard" })
		r, connect := h.login()
		r.wantError(apierror.Unavailable)
		if connect != "'self' "+i.URL {
			t.Errorf("by %q the dashboard may ask %s", bad, connect)
		}
	}
}

func TestWithoutAnIssuerUsersLogInWithKeys(t *testing.T) {
	t.Parallel()
	i := startIssuer(t)
	for want, h := range map[string]*fixture{
		`{"auth":"off","oidc":null}`: openWith(t, func(cfg *gateway.Config) {
			cfg.OIDC = access.OIDCConfig{Issuer: i.URL, Audience: "jobweaver", ClientID: "dashboard"}
		}),
		`{"auth":"on","oidc":null}`: openFor(t, i, nil),
	} {
		if r, connect := h.login(); string(r.want(http.StatusOK).body) != want || connect != "'self'" {
			t.Errorf("answered %s, and the dashboard may ask %s", r.body, connect)
		}
	}
	h := openFor(t, i, func(cfg *access.OIDCConfig) { cfg.ClientID = "dashboard" })
	i.set(func() { i.away = true })
	r, connect := h.login()
	r.wantError(apierror.Unavailable)
	if connect != "'self' "+i.URL {
		t.Errorf("without the issuer the dashboard may ask %s", connect)
	}
	h.with("").get("/api/login?x=1").wantError(apierror.InvalidJobRequest)
}
