// Package access authenticates requests and decides what they may do.
package access

import (
	"context"
	"fmt"
	"slices"
)

// Role is a right that a key or token gives. Admin includes Operate and Work, Operate includes Read and Submit.
type Role string

// The roles.
const (
	Submit  Role = "submit"
	Read    Role = "read"
	Operate Role = "operate"
	Work    Role = "work"
	Admin   Role = "admin"
)

// Needs of routes that are not roles: no key has one of these.
const (
	Public       Role = "public"       // no authentication is needed
	Known        Role = "known"        // any valid key or token, whatever its roles
	Installation Role = "installation" // Admin, with a key that belongs to no owner
)

// given are the roles that a key or token can have.
var given = []Role{Submit, Read, Operate, Work, Admin}

// ParseRoles reads the names of roles, from the database or from a request.
func ParseRoles(names []string) ([]Role, error) {
	roles := make([]Role, len(names))
	for i, name := range names {
		roles[i] = Role(name)
		if !slices.Contains(given, roles[i]) {
			return nil, fmt.Errorf("%q is not a role: use submit, read, operate, work or admin", name)
		}
	}
	return roles, nil
}

// Principal is the sender of a request. The zero value has no rights.
type Principal struct {
	Owner     string // the owner whose jobs and settings it can reach; empty: the installation's own
	Anonymous bool   // authentication is off
	Actor     string // key:<id>, oidc:<subject> or anonymous
	Roles     []Role

	Types, Queues []string // with the role work, those of which it may claim attempts; empty: any
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

// May reports whether the principal has what a route needs. It denies needs that it does not know.
func (p Principal) May(need Role) bool {
	switch need {
	case Public:
		return true
	case Known:
		return p.Actor != ""
	case Installation:
		return p.Has(Admin) && p.Owner == ""
	case Submit, Read, Operate, Work, Admin:
		return p.Has(need)
	}
	return false
}

type principalKey struct{}

// With returns a context for a request from p.
func With(ctx context.Context, p Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, p)
}

// Of returns the principal of a request.
func Of(ctx context.Context) Principal {
	p, _ := ctx.Value(principalKey{}).(Principal)
	return p
}
