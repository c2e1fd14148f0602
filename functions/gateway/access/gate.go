package access

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/apikey"
)

const (
	keyHeader   = "X-Api-Key"
	ownerHeader = "X-Owner-Id"

	// patience is how long a request waits for the database to read its key, or for the issuer's keys.
	patience = 5 * time.Second
)

// Gate authenticates requests.
type Gate struct {
	Keys   *Keyring
	Tokens *Issuer // nil: tokens are not accepted
}

// Authenticate returns the sender of a request, or the error to answer with. suspect is as for Keyring.Authenticate.
func (g *Gate) Authenticate(r *http.Request, suspect func() bool) (Principal, error) {
	text, err := credential(r)
	if err != nil {
		return Principal{}, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	p, err := g.known(ctx, text, suspect)
	switch {
	case errors.Is(err, ErrUnknown):
		return Principal{}, unauthorized()
	case errors.Is(err, ErrNoOwner):
		return Principal{}, apierror.New(apierror.Forbidden, "the token names no owner")
	case errors.Is(err, ErrBusy), errors.Is(err, ErrIssuerAway):
		return Principal{}, apierror.New(apierror.Unavailable, "the API key or token cannot be checked at the moment")
	case err != nil:
		return Principal{}, err
	}
	return p.actingFor(r)
}

// Anonymous returns the sender of a request to an installation without authentication.
func Anonymous(r *http.Request) (Principal, error) {
	return Principal{Anonymous: true, Actor: "anonymous", Roles: []Role{Admin}}.actingFor(r)
}

func (g *Gate) known(ctx context.Context, text string, suspect func() bool) (Principal, error) {
	if key, ok := apikey.Parse(text); ok {
		return g.Keys.Authenticate(ctx, key, suspect)
	}
	if g.Tokens != nil {
		return g.Tokens.Authenticate(ctx, text)
	}
	return Principal{}, ErrUnknown
}

// howTo states which header a request without a usable key has to send.
const howTo = "send the header 'Authorization: Bearer KEY_OR_TOKEN', or 'X-Api-Key: KEY'"

func unauthorized() error {
	return apierror.New(apierror.Unauthorized, "the API key or token is not valid; "+howTo)
}

// credential returns the key or token of a request, which must have exactly one. A key in the URL does not count:
// proxies on the way have logged it.
func credential(r *http.Request) (string, error) {
	if inAddress(r.URL) {
		return "", apierror.New(apierror.Unauthorized,
			"an API key must not stand in the address, where it is logged: revoke it, and send another in a header")
	}
	bearers, keys := r.Header.Values("Authorization"), r.Header.Values(keyHeader)
	switch {
	case len(bearers)+len(keys) == 0:
		return "", apierror.New(apierror.Unauthorized, "an API key or token is required; "+howTo)
	case len(bearers) == 0 && len(keys) == 1:
		return keys[0], nil
	case len(bearers) == 1 && len(keys) == 0:
		if scheme, text, ok := strings.Cut(bearers[0], " "); ok && strings.EqualFold(scheme, "Bearer") {
			return text, nil
		}
	}
	return "", unauthorized()
}

// ClaimedKey returns the id of the API key in the headers of a request, whether or not the key is valid.
func ClaimedKey(r *http.Request) string {
	text, err := credential(r)
	if err != nil {
		return ""
	}
	key, _ := apikey.Parse(text)
	return key.ID()
}

func inAddress(u *url.URL) bool {
	if !strings.Contains(u.RawQuery, "jw") {
		return false
	}
	for _, values := range u.Query() {
		for _, value := range values {
			if _, ok := apikey.Parse(value); ok {
				return true
			}
		}
	}
	return false
}

// actingFor applies X-Owner-Id: an admin of the installation may act as the admin of one owner.
func (p Principal) actingFor(r *http.Request) (Principal, error) {
	owners := r.Header.Values(ownerHeader)
	if len(owners) == 0 || len(owners) == 1 && owners[0] == p.Owner {
		return p, nil
	}
	if !p.May(Installation) {
		return Principal{}, apierror.New(apierror.Forbidden, "only an admin of the installation acts for another owner")
	}
	if len(owners) > 1 || apibody.CheckOwner(owners[0]) != nil {
		return Principal{}, apierror.New(apierror.Forbidden, "%s must be given once, with an ownerId", ownerHeader)
	}
	p.Owner = owners[0]
	return p, nil
}
