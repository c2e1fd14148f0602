package access

import "fmt"

// Login is how a page in a browser gets a token of the issuer for its user: the code flow with PKCE.
type Login struct {
	Issuer, ClientID           string
	AuthorizationURL, TokenURL string
	Scopes                     []string
	// IDToken: the audience is the page's own client id, so of the two tokens the ID token is the one for it. Otherwise
	// it is the access token.
	IDToken bool
}

// LoginIssuer is the address of the issuer where people log in; empty: they have API keys only.
func (i *Issuer) LoginIssuer() string {
	if i == nil || i.cfg.ClientID == "" {
		return ""
	}
	return i.cfg.Issuer
}

// Login returns how people log in, where LoginIssuer is not empty. ErrIssuerAway: the issuer does not say where.
func (i *Issuer) Login() (Login, error) {
	known, err := i.current()
	if err != nil {
		return Login{}, err
	}
	// A page goes there with what it has: an address that runs a script, or that others can change, is none.
	if !isSecure(known.AuthorizationURL) || !isSecure(known.TokenURL) {
		return Login{}, fmt.Errorf("%w: its authorization and token endpoints are not https URLs", ErrIssuerAway)
	}
	return Login{
		Issuer: i.cfg.Issuer, ClientID: i.cfg.ClientID, Scopes: i.cfg.Scopes,
		AuthorizationURL: known.AuthorizationURL, TokenURL: known.TokenURL,
		IDToken: i.cfg.ClientID == i.cfg.Audience,
	}, nil
}
