package gateway

import (
	"time"

	"github.com/gin-gonic/gin"

	"github.com/jobweaver/jobweaver/functions/gateway/access"
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
			return f.door.failed(c, err)
		}
		ctx := access.With(c.Request.Context(), p)
		if needs != access.Submit && !p.Everyone { // single jobs of all owners go in one statement
			ctx = apidb.WithCaller(ctx, ownerCaller(p))
		}
		c.Request = c.Request.WithContext(ctx)
		if err := f.door.enter(c); err != nil {
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
		if err := f.door.enter(c); err != nil {
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
	return f.gate.Who(c.Request, func() bool {
		return !f.door.failures.Look(callerAt(remoteAddr(c)), time.Now()).OK
	})
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

// whose is the owner whose things the request sees.
func whose(c *gin.Context) apidb.Owner {
	p := access.Of(c.Request.Context())
	if p.Everyone {
		return apidb.Everyone
	}
	return apidb.OwnerOf(p.Owner)
}
