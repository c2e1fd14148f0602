package access

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"

	"github.com/jobweaver/jobweaver/shared/apibody"
)

// OIDCConfig says whose tokens are taken beside API keys, and what their claims mean.
type OIDCConfig struct {
	Issuer     string   `envconfig:"OIDC_ISSUER" desc:"URL of the OpenID Connect issuer whose tokens are accepted; empty: none are"`
	Audience   string   `envconfig:"OIDC_AUDIENCE" desc:"required audience of tokens; required with OIDC_ISSUER"`
	OwnerClaim string   `envconfig:"OIDC_OWNER_CLAIM" default:"owner" desc:"claim that names the owner, or a JSON pointer to it, such as /org/id; a token without it has no rights"`
	RolesClaim string   `envconfig:"OIDC_ROLES_CLAIM" default:"roles" desc:"claim that lists roles, or a JSON pointer, such as /realm_access/roles; unknown roles are ignored"`
	Roles      []string `envconfig:"OIDC_ROLES" desc:"roles of a token without that claim"`

	ClientID string   `envconfig:"OIDC_CLIENT_ID" desc:"client id of the dashboard at the issuer: a public client that must use PKCE, with the gateway's own address and the path /login as its redirect URL; empty: users log in with API keys only"`
	Scopes   []string `envconfig:"OIDC_SCOPES" default:"openid" desc:"scopes that the dashboard requests; they must include openid"`
}

const (
	keysFresh   = 5 * time.Minute // after which the issuer is asked for its keys again
	keysStale   = time.Hour       // after which old ones are good for nothing, should it be away
	issuerWaits = 3 * time.Second
	maxKeysBody = 1 << 20
)

// algorithms are those whose keys can be public.
var algorithms = []string{
	oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.EdDSA,
}

// Issuer knows tokens of an OpenID Connect issuer. It may be away at the start, and for an hour later on.
type Issuer struct {
	cfg   OIDCConfig
	roles []Role
	waits time.Duration // for an answer of the issuer

	mu      sync.Mutex
	found   *found
	madeAt  time.Time
	triedAt time.Time
	asking  bool
	flight  singleflight.Group // of those who ask
}

// found is what the issuer's own document leads to.
type found struct {
	*oidc.IDTokenVerifier
	AuthorizationURL string `json:"authorization_endpoint"`
	TokenURL         string `json:"token_endpoint"`
	KeysURL          string `json:"jwks_uri"`
}

// NewIssuer checks the settings; nil: there is no issuer.
func NewIssuer(cfg OIDCConfig) (*Issuer, error) {
	switch {
	case cfg.Issuer == "" && cfg.Audience != "":
		return nil, errors.New("OIDC_ISSUER: is not set, and OIDC_AUDIENCE is")
	case cfg.Issuer == "" && len(cfg.Roles) > 0:
		return nil, errors.New("OIDC_ISSUER: is not set, and OIDC_ROLES is")
	case cfg.Issuer == "" && cfg.ClientID != "":
		return nil, errors.New("OIDC_ISSUER: is not set, and OIDC_CLIENT_ID is")
	case cfg.Issuer == "":
		return nil, nil
	}
	if cfg.Audience == "" {
		return nil, errors.New("OIDC_AUDIENCE: is required with OIDC_ISSUER, or tokens for others would be taken")
	}
	if !isSecure(cfg.Issuer) {
		return nil, errors.New("OIDC_ISSUER: must be an https URL")
	}
	if len(cfg.Scopes) == 0 {
		cfg.Scopes = []string{oidc.ScopeOpenID}
	}
	if cfg.ClientID != "" && !slices.Contains(cfg.Scopes, oidc.ScopeOpenID) {
		return nil, errors.New("OIDC_SCOPES: must have openid among them")
	}
	roles, err := ParseRoles(cfg.Roles)
	if err != nil {
		return nil, fmt.Errorf("OIDC_ROLES: %w", err)
	}
	if cfg.OwnerClaim == "" {
		cfg.OwnerClaim = "owner"
	}
	if cfg.RolesClaim == "" {
		cfg.RolesClaim = "roles"
	}
	return &Issuer{cfg: cfg, roles: roles, waits: issuerWaits}, nil
}

// client is for one set of keys: who sends tokens with unknown keys uses up its calls, and not those of the next one.
func (i *Issuer) client() *http.Client {
	return &http.Client{
		Transport:     &seldom{limit: rate.NewLimiter(rate.Every(2*time.Second), 4), next: http.DefaultTransport},
		Timeout:       i.waits,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

const hostLetters = "abcdefghijklmnopqrstuvwxyz0123456789-._:[]"

// isSecure reports whether nobody on the way can change what an address answers. Its host may stand in a header: a URL
// could have a semicolon there.
func isSecure(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || strings.Trim(strings.ToLower(u.Host), hostLetters) != "" {
		return false
	}
	return u.Scheme == "https" || u.Scheme == "http" && isLoopback(u.Hostname())
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Who says who comes with a token. ErrUnknown: nobody; ErrNoOwner: somebody who is no owner; another error: that could
// not be found out.
func (i *Issuer) Who(ctx context.Context, text string) (Principal, error) {
	if len(text) > maxToken || strings.Count(text, ".") != 2 {
		return Principal{}, ErrUnknown
	}
	verifier, err := i.current()
	if err != nil {
		return Principal{}, err
	}
	var away error
	token, err := verifier.Verify(context.WithValue(ctx, awayKey{}, &away), text)
	if err != nil && away != nil {
		return Principal{}, fmt.Errorf("%w: %w", ErrIssuerAway, away)
	}
	var claims map[string]any
	if err != nil || token.Claims(&claims) != nil || apibody.CheckOwner(token.Subject) != nil {
		return Principal{}, ErrUnknown
	}
	owner, _ := claim(claims, i.cfg.OwnerClaim).(string)
	if apibody.CheckOwner(owner) != nil { // an empty one would be the installation's
		return Principal{}, ErrNoOwner
	}
	return Principal{Owner: owner, Actor: "oidc:" + token.Subject, Roles: i.rolesOf(claim(claims, i.cfg.RolesClaim))}, nil
}

const maxToken = 16 << 10

// rolesOf reads a list of names, or names with spaces between. Without any claim the setting's roles count.
func (i *Issuer) rolesOf(value any) []Role {
	var names []string
	switch value := value.(type) {
	case nil:
		return i.roles
	case string:
		names = strings.Fields(value)
	case []any:
		for _, name := range value {
			if name, ok := name.(string); ok {
				names = append(names, name)
			}
		}
	}
	roles := []Role{}
	for _, name := range names {
		if role := Role(name); slices.Contains(given, role) && !slices.Contains(roles, role) {
			roles = append(roles, role)
		}
	}
	return roles
}

// claim is a claim by its name, or by the JSON pointer to it.
func claim(claims map[string]any, name string) any {
	if !strings.HasPrefix(name, "/") {
		return claims[name]
	}
	var value any = claims
	for part := range strings.SplitSeq(name[1:], "/") {
		object, _ := value.(map[string]any)
		value = object[strings.NewReplacer("~1", "/", "~0", "~").Replace(part)]
	}
	return value
}

// current is what verifies tokens by the issuer's keys, which are asked for again from time to time: one that the
// issuer has taken back is good for keysFresh at most while it answers.
//
// Who finds that they are to be asked for does so; others go on with the old ones meanwhile, or wait for the answer
// where there are none that are good.
func (i *Issuer) current() (*found, error) {
	i.mu.Lock()
	now := time.Now()
	known, usable := i.found, i.found != nil && now.Sub(i.madeAt) < keysStale
	fresh := now.Sub(i.madeAt) < keysFresh || now.Sub(i.triedAt) < keysFresh/10 || i.asking
	away := now.Sub(i.triedAt) < time.Second
	if !usable && !away || usable && !fresh {
		i.asking = true
	}
	i.mu.Unlock()
	switch {
	case usable && fresh:
		return known, nil
	case !usable && away:
		return nil, ErrIssuerAway
	}
	answer, err, _ := i.flight.Do("", func() (any, error) { return i.ask(now) })
	switch {
	case err == nil:
		return answer.(*found), nil
	case usable:
		return known, nil
	}
	return nil, fmt.Errorf("%w: %w", ErrIssuerAway, err)
}

// ask finds the issuer's keys, unless somebody has tried since.
func (i *Issuer) ask(since time.Time) (*found, error) {
	i.mu.Lock()
	tried, made, known := i.triedAt, i.madeAt, i.found
	i.mu.Unlock()
	switch {
	case made.After(since):
		return known, nil
	case tried.After(since):
		return nil, errAskedAlready
	}
	known, err := i.find()
	i.mu.Lock()
	defer i.mu.Unlock()
	i.asking, i.triedAt = false, time.Now()
	if err == nil {
		i.found, i.madeAt = known, i.triedAt
	}
	return known, err
}

// find asks the issuer where its keys and its login are.
func (i *Issuer) find() (*found, error) {
	ctx := oidc.ClientContext(context.Background(), i.client()) // the keys are read for all requests
	provider, err := oidc.NewProvider(ctx, i.cfg.Issuer)
	if err != nil {
		return nil, err
	}
	made := &found{}
	if err := provider.Claims(made); err != nil {
		return nil, err
	}
	keys := keySet{oidc.NewRemoteKeySet(ctx, made.KeysURL)}
	cfg := oidc.Config{ClientID: i.cfg.Audience, SupportedSigningAlgs: algorithms}
	made.IDTokenVerifier = oidc.NewVerifier(i.cfg.Issuer, keys, &cfg)
	return made, nil
}

type awayKey struct{}

// keySet tells a token that is bad from keys that could not be read.
type keySet struct{ *oidc.RemoteKeySet }

func (k keySet) VerifySignature(ctx context.Context, jwt string) ([]byte, error) {
	payload, err := k.RemoteKeySet.VerifySignature(ctx, jwt)
	if failed := (*url.Error)(nil); errors.As(err, &failed) && !errors.Is(err, errAskedAlready) {
		if away, ok := ctx.Value(awayKey{}).(*error); ok {
			*away = failed
		}
	}
	return payload, err
}

var errAskedAlready = errors.New("the issuer was asked just now")

// seldom lets few calls out: each token with an unknown key would be one. Answers are bounded.
type seldom struct {
	limit *rate.Limiter
	next  http.RoundTripper
}

func (s *seldom) RoundTrip(r *http.Request) (*http.Response, error) {
	if !s.limit.Allow() {
		return nil, errAskedAlready
	}
	res, err := s.next.RoundTrip(r)
	if err == nil {
		res.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(res.Body, maxKeysBody), res.Body}
	}
	return res, err
}
