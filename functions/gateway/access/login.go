package access

import "fmt"

// Login has the parameters with which a page in a browser gets a token of the issuer for its user, by the code flow
// with PKCE.
type Login struct {
	Issuer, ClientID           string
	AuthorizationURL, TokenURL string
	Scopes                     []string
	// IDToken reports which of the two tokens this API accepts: the ID token if the audience is the client id of the
	// page, otherwise the access token.
	IDToken bool
}

// LoginIssuer returns the address of the issuer at which users log in; empty: users have only API keys.
func (i *Issuer) LoginIssuer() string {
	if i == nil || i.cfg.ClientID == "" {
		return ""
	}
	return i.cfg.Issuer
}

// Login returns how users log in. LoginIssuer must not be empty. It returns ErrIssuerAway while the issuer's endpoints
// are not known.
func (i *Issuer) Login() (Login, error) {
	known, err := i.current()
	if err != nil {
		return Login{}, err
	}
	// The page navigates to these addresses with its login parameters, so they must not be scripts, nor plain HTTP that
	// others can change.
	if !isSecure(known.AuthorizationURL) || !isSecure(known.TokenURL) {
		return Login{}, fmt.Errorf("%w: its authorization and token endpoints are not https URLs", ErrIssuerAway)
	}
	return Login{
		Issuer: i.cfg.Issuer, ClientID: i.cfg.ClientID, Scopes: i.cfg.Scopes,
		AuthorizationURL: known.AuthorizationURL, TokenURL: known.TokenURL,
		IDToken: i.cfg.ClientID == i.cfg.Audience,
	}, nil
}
