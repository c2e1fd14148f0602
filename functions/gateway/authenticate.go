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

// authenticated calls handle only for requests that have what a route needs. Until then it reads only the headers of a
// request.
func (f *Function) authenticated(needs access.Role, handle func(*gin.Context) error) func(*gin.Context) error {
	return func(c *gin.Context) error {
		if needs == access.Public {
			return handle(c)
		}
		p, err := f.auth.Principal(c)
		if err != nil {
			return f.limits.CountFailure(c, err)
		}
		ctx := access.With(c.Request.Context(), p)
		// Single submits of all owners share a statement, so they do not count against one owner's share of connections.
		if needs != access.Submit && !p.Anonymous {
			ctx = apidb.WithCaller(ctx, edge.OwnerCaller(p))
		}
		c.Request = c.Request.WithContext(ctx)
		if err := f.limits.AllowRequest(c); err != nil {
			return err
		}
		if !p.May(needs) {
			return apierror.New(apierror.Forbidden, "this needs the role %s, which the API key or token does not have", needs)
		}
		return handle(c)
	}
}

// limited counts requests to public routes against the limit of their address.
func (f *Function) limited(handle func(*gin.Context) error) func(*gin.Context) error {
	return func(c *gin.Context) error {
		if err := f.limits.AllowRequest(c); err != nil {
			return err
		}
		return handle(c)
	}
}

// refuseForeignPages refuses requests that a page of another site makes through its user's browser.
func (f *Function) refuseForeignPages(c *gin.Context) {
	switch {
	case f.cfg.Auth == AuthOff && !isLoopback(c.Request.Host):
		// DNS rebinding: a foreign name that resolves to this server lets a foreign page pass as a page of this server.
		f.fail(c, apierror.New(apierror.Forbidden, "with AUTH=off the host must be localhost, not %q", c.Request.Host))
	case crossOrigin.Check(c.Request) != nil:
		f.fail(c, apierror.New(apierror.Forbidden, "this request is from a page of another site"))
	}
}

var crossOrigin http.CrossOriginProtection

// isLoopback reports whether a Host header names the client's own machine.
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
