// Package access authenticates requests and decides what they may do.
package access

import (
	"context"
	"fmt"
	"slices"
)

// Role is what a key or token allows. Admin has all of operate and work, operate all of read and submit.
type Role string

// The roles.
const (
	Submit  Role = "submit"
	Read    Role = "read"
	Operate Role = "operate"
	Work    Role = "work"
	Admin   Role = "admin"
)

// What a route may need beside a role. No key has one of these.
const (
	Public       Role = "public"       // no authentication is needed
	Known        Role = "known"        // any valid key or token, whatever its roles
	Installation Role = "installation" // admin, of a key that is no owner's
)

// given are the roles that a key or token may have.
var given = []Role{Submit, Read, Operate, Work, Admin}

// ParseRoles reads roles as they are stored and asked for.
func ParseRoles(names []string) ([]Role, error) {
	roles := make([]Role, len(names))
	for i, name := range names {
		roles[i] = Role(name)
		if !slices.Contains(given, roles[i]) {
			return nil, fmt.Errorf("%q is no role: submit, read, operate, work and admin are", name)
		}
	}
	return roles, nil
}

// Principal is the sender of a request. The zero value may do nothing.
type Principal struct {
	Owner    string // whose things it sees; empty: the installation's own
	Everyone bool   // it sees all owners' things: authentication is off
	Actor    string // key:<id>, oidc:<subject> or anonymous
	Roles    []Role

	Types, Queues []string // of which it may have attempts, with the role work; empty: any
}

// Has reports whether the principal has the role, or one that includes it.
func (p Principal) Has(role Role) bool {
	for _, own := range p.Roles {
		switch {
		case own == role, own == Admin:
			return true
		case own == Operate && role != Admin && role != Work:
			return true
		}
	}
	return false
}

// May reports whether the principal has what a route needs. It refuses a need that it does not know.
func (p Principal) May(need Role) bool {
	switch need {
	case Public:
		return true
	case Known:
		return p.Actor != ""
	case Installation:
		return p.Has(Admin) && (p.Everyone || p.Owner == "")
	case Submit, Read, Operate, Work, Admin:
		return p.Has(need)
	}
	return false
}

type principalKey struct{}

// With is a context of a request from p.
func With(ctx context.Context, p Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, p)
}

// Of returns the principal of a request.
func Of(ctx context.Context) Principal {
	p, _ := ctx.Value(principalKey{}).(Principal)
	return p
}
