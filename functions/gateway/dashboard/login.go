package dashboard

import (
	"net/http"
	"net/url"

	"github.com/gin-gonic/gin"

	"github.com/jobweaver/jobweaver/functions/gateway/access"
	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apierror"
)

type loginBody struct {
	Auth string     `json:"auth"`
	OIDC *oidcLogin `json:"oidc"`
}

type oidcLogin struct {
	Issuer                string   `json:"issuer"`
	ClientID              string   `json:"clientId"`
	AuthorizationEndpoint string   `json:"authorizationEndpoint"`
	TokenEndpoint         string   `json:"tokenEndpoint"`
	Scopes                []string `json:"scopes"`
	Token                 string   `json:"token"`
}

// Login has the endpoint that reports how users of the dashboard log in.
type Login struct {
	Auth string       // the setting AUTH
	Gate *access.Gate // nil: authentication is off
}

// Get is GET /api/login: how a user without a key or token can log in.
func (l *Login) Get(c *gin.Context) error {
	body := loginBody{Auth: l.Auth}
	if tokens := l.issuer(); tokens != nil {
		how, err := tokens.Login()
		if err != nil {
			return apierror.New(apierror.Unavailable, "the issuer of tokens cannot be reached; an API key works meanwhile")
		}
		body.OIDC = &oidcLogin{
			Issuer: how.Issuer, ClientID: how.ClientID, AuthorizationEndpoint: how.AuthorizationURL,
			TokenEndpoint: how.TokenURL, Scopes: how.Scopes, Token: "access_token",
		}
		if how.IDToken {
			body.OIDC.Token = "id_token"
		}
	}
	return edge.Answer(c, http.StatusOK, body)
}

// issuer returns the issuer at which users log in; nil: they use API keys, or authentication is off.
func (l *Login) issuer() *access.Issuer {
	if l.Gate == nil || l.Gate.Tokens.LoginIssuer() == "" {
		return nil
	}
	return l.Gate.Tokens
}

// Origins returns the origins from which the dashboard gets tokens: that of the issuer, and that of its token endpoint,
// which can be a different one.
func (l *Login) Origins() []string {
	tokens := l.issuer()
	if tokens == nil {
		return nil
	}
	origins := []string{origin(tokens.LoginIssuer())}
	if how, err := tokens.Login(); err == nil && origin(how.TokenURL) != origins[0] {
		origins = append(origins, origin(how.TokenURL))
	}
	return origins
}

// origin returns the origin of a checked address.
func origin(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host
}
