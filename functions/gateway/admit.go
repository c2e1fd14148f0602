package gateway

import (
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/jobweaver/jobweaver/functions/gateway/access"
	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apierror"
)

// The values of AUTH.
const (
	AuthOn  = "on"
	AuthOff = "off"
)

// admitting lets in who has what a route needs, before anything of the request is looked at.
func (f *Function) admitting(needs access.Role, handle func(*gin.Context) error) func(*gin.Context) error {
	return func(c *gin.Context) error {
		if needs == access.Public {
			return handle(c)
		}
		p, err := f.who(c)
		if err != nil {
			return f.limits.CountFailure(c, err)
		}
		ctx := access.With(c.Request.Context(), p)
		if needs != access.Submit && !p.Everyone { // single jobs of all owners go in one statement
			ctx = apidb.WithCaller(ctx, edge.OwnerCaller(p))
		}
		c.Request = c.Request.WithContext(ctx)
		if err := f.limits.AllowRequest(c); err != nil {
			return err
		}
		if !p.May(needs) {
			return apierror.New(apierror.Forbidden, "this needs the role %s, which the API key or token does not have", needs)
		}
		return f.auditing(c, p, handle)
	}
}

// counted counts requests to what is public, by their addresses.
func (f *Function) counted(handle func(*gin.Context) error) func(*gin.Context) error {
	return func(c *gin.Context) error {
		if err := f.limits.AllowRequest(c); err != nil {
			return err
		}
		return handle(c)
	}
}

// who says who a request is from.
func (f *Function) who(c *gin.Context) (access.Principal, error) {
	if f.gate == nil {
		return access.Principal{Everyone: true, Actor: "anonymous", Roles: []access.Role{access.Admin}}, nil
	}
	return f.gate.Who(c.Request, func() bool { return f.limits.Suspects(c) })
}

// still says whether who asks may still be told, after an answer was held: the key may be none any more.
func (f *Function) still(c *gin.Context, needs access.Role) error {
	p, err := f.who(c)
	if err == nil && !p.May(needs) {
		err = errNoMore
	}
	return err
}

var errNoMore = apierror.New(apierror.Unauthorized, "the API key or token does not allow this any more")

// guard refuses what no program of ours sends, but a browser in somebody else's hands.
func (f *Function) guard(c *gin.Context) {
	switch {
	case f.cfg.Auth == AuthOff && !isLoopback(c.Request.Host):
		// A name that leads here, and is not ours, is how a page from elsewhere would pass for one of this server.
		f.fail(c, apierror.New(apierror.Forbidden, "with AUTH=off this is %q to nobody; ask for localhost", c.Request.Host))
	case fromElsewhere.Check(c.Request) != nil:
		f.fail(c, apierror.New(apierror.Forbidden, "this request is from a page of another site"))
	}
}

var fromElsewhere http.CrossOriginProtection

// isLoopback: the Host is this machine's own to whoever asks.
func isLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	at, err := netip.ParseAddr(host)
	return err == nil && at.Zone() == "" && at.Unmap().IsLoopback()
}
