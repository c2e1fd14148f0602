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

// OIDCConfig configures the issuer whose tokens are accepted beside API keys, and the meaning of their claims.
type OIDCConfig struct {
	Issuer     string   `envconfig:"OIDC_ISSUER" desc:"URL of the OpenID Connect issuer whose tokens are accepted; empty: none are"`
	Audience   string   `envconfig:"OIDC_AUDIENCE" desc:"required audience of tokens; required with OIDC_ISSUER"`
	OwnerClaim string   `envconfig:"OIDC_OWNER_CLAIM" default:"owner" desc:"claim that names the owner, or a JSON pointer to it, such as /org/id; a token without it has no rights"`
	RolesClaim string   `envconfig:"OIDC_ROLES_CLAIM" default:"roles" desc:"claim that lists roles, or a JSON pointer, such as /realm_access/roles; unknown roles are ignored"`
	Roles      []string `envconfig:"OIDC_ROLES" desc:"roles of a token without that claim"`

	ClientID string   `envconfig:"OIDC_CLIENT_ID" desc:"client id of the dashboard at the issuer (docs/security.md); empty: users log in with API keys only"`
	Scopes   []string `envconfig:"OIDC_SCOPES" default:"openid" desc:"scopes that the dashboard requests; they must include openid"`
}

const (
	keysFresh   = 5 * time.Minute // the age at which the issuer's keys are read again
	keysStale   = time.Hour       // the age from which they are not used any more, even while the issuer is away
	issuerWaits = 3 * time.Second
	maxKeysBody = 1 << 20
)

// algorithms are the asymmetric ones, whose verification keys can be public.
var algorithms = []string{
	oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.EdDSA,
}

// Issuer verifies tokens of an OpenID Connect issuer. The issuer may be away at the start, and later for up to an hour.
type Issuer struct {
	cfg   OIDCConfig
	roles []Role
	waits time.Duration // for a response of the issuer

	mu      sync.Mutex
	found   *found
	madeAt  time.Time
	triedAt time.Time
	asking  bool
	flight  singleflight.Group // one fetch of the keys for all requests
}

// found is the result of the issuer's discovery document.
type found struct {
	*oidc.IDTokenVerifier
	AuthorizationURL string `json:"authorization_endpoint"`
	TokenURL         string `json:"token_endpoint"`
	KeysURL          string `json:"jwks_uri"`
}

// NewIssuer checks the settings. It returns nil if no issuer is configured.
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

// client makes an HTTP client for one set of keys. Tokens with unknown key ids use up the calls of that client, and not
// those of the next set.
func (i *Issuer) client() *http.Client {
	return &http.Client{
		Transport:     &seldom{limit: rate.NewLimiter(rate.Every(2*time.Second), 4), next: http.DefaultTransport},
		Timeout:       i.waits,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

const hostLetters = "abcdefghijklmnopqrstuvwxyz0123456789-._:[]"

// isSecure reports whether the address uses HTTPS, or is on this machine, so that its responses cannot be changed on
// the way. It also checks that the host can stand in a header: a URL could have a semicolon there.
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

// Authenticate returns the principal of a token. It returns ErrUnknown for an invalid token, ErrNoOwner for one that
// names no owner, and another error if the token could not be verified.
func (i *Issuer) Authenticate(ctx context.Context, text string) (Principal, error) {
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
	if apibody.CheckOwner(owner) != nil { // an empty one would mean the installation
		return Principal{}, ErrNoOwner
	}
	return Principal{Owner: owner, Actor: "oidc:" + token.Subject, Roles: i.rolesOf(claim(claims, i.cfg.RolesClaim))}, nil
}

const maxToken = 16 << 10

// rolesOf reads a list of names, or a text of names separated by spaces. Without such a claim, the roles of the setting
// apply.
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

// claim returns a claim by its name, or by a JSON pointer to it.
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

// current returns the verifier with the issuer's keys. While the issuer responds, its keys are at most keysFresh old,
// so a withdrawn key works for no longer.
//
// The first request that finds the keys too old reads them again. The others continue with the old keys meanwhile, or
// wait if there are no usable ones.
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

// ask reads the issuer's keys, unless another request has tried since.
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

// find reads from the issuer where its keys and its login are.
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

// keySet distinguishes a bad token from keys that could not be read.
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

// seldom limits the calls to the issuer, because each token with an unknown key id would cause one. It also bounds the
// size of responses.
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
