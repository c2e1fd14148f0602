package dashboard

import (
	"net/http"
	"net/url"

	"github.com/gin-gonic/gin"

	"github.com/jobweaver/jobweaver/functions/gateway/access"
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

// Login is how users of the dashboard log in.
type Login struct {
	Auth string       // the setting AUTH
	Gate *access.Gate // nil: no authentication is needed
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
	c.JSON(http.StatusOK, body)
	return nil
}

// issuer is where people log in; nil: they have API keys, or need nothing.
func (l *Login) issuer() *access.Issuer {
	if l.Gate == nil || l.Gate.Tokens.LoginIssuer() == "" {
		return nil
	}
	return l.Gate.Tokens
}

// Origins returns the origins from which the dashboard gets tokens: the issuer's, and that of its token endpoint,
// which some issuers have elsewhere.
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

// origin is that of an address that has been checked.
func origin(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host
}
