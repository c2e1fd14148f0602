package edge

import (
	"context"
	"errors"

	"github.com/gin-gonic/gin"

	"github.com/jobweaver/jobweaver/functions/gateway/access"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apierror"
)

// Authenticator determines the sender of a request.
type Authenticator struct {
	Gate   *access.Gate // nil: authentication is off
	Limits *Limits
}

// Principal returns the sender of a request.
func (a *Authenticator) Principal(c *gin.Context) (access.Principal, error) {
	if a.Gate == nil {
		return access.Anonymous(c.Request)
	}
	return a.Gate.Authenticate(c.Request, func() bool { return a.Limits.Suspects(c) })
}

// Recheck authenticates a request again after its response was held: the key may have been revoked meanwhile.
func (a *Authenticator) Recheck(c *gin.Context, needs access.Role) error {
	p, err := a.Principal(c)
	if err == nil && !p.May(needs) {
		err = errRoleLost
	}
	return err
}

var errRoleLost = apierror.New(apierror.Unauthorized, "the API key or token no longer allows this")

// Hold holds the response to a request: it calls await, whose context ends after the wait, and then checks that the key
// may still read. The caller calls release after it has answered.
func (a *Authenticator) Hold(c *gin.Context, wait Wait, await func(context.Context)) (release func(), err error) {
	if release, err = a.Limits.HoldAnswer(c); err != nil {
		return nil, err
	}
	wait.Confirm(c)
	ctx, cancel := context.WithTimeout(c.Request.Context(), wait.Duration)
	defer cancel()
	await(ctx)
	if err := a.Recheck(c, access.Read); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// AwaitEnd reads what a request shows, and again at its end if the request waits for that: await returns then, or when
// its context ends. The caller calls release after it has answered.
func AwaitEnd[T any](
	c *gin.Context, a *Authenticator, read func() (T, error), hasEnded func(T) bool, await func(context.Context),
) (shown T, release func(), err error) {
	release = func() {}
	q := NewQuery(c)
	wait := WaitOf(c, &q)
	if err := q.Close("wait"); err != nil {
		return shown, release, err
	}
	if shown, err = read(); err != nil {
		return shown, release, err
	}
	wait.Confirm(c)
	if wait.Duration <= 0 || hasEnded(shown) {
		return shown, release, nil
	}
	// Neither what was read nor its memory is held meanwhile.
	shown = *new(T)
	LoadOf(c).Drop()
	held, err := a.Hold(c, wait, await)
	if err != nil {
		return shown, release, err
	}
	if shown, err = read(); err != nil {
		held()
		return shown, release, err
	}
	return shown, held, nil
}

// WithShare returns ctx with the name of the request's caller, so that the request takes database connections from the
// caller's share.
func WithShare(ctx context.Context, c *gin.Context) context.Context {
	if access.Of(ctx).Anonymous {
		return ctx
	}
	return apidb.WithCaller(ctx, CallerOf(c))
}

// IsRefusal reports whether an error of Recheck shows that the key no longer allows the request. Any other error means
// that the key could not be checked.
func IsRefusal(err error) bool {
	var known *apierror.Error
	return errors.As(err, &known) && (known.Code == apierror.Unauthorized || known.Code == apierror.Forbidden)
}
