package dev

import (
	"context"
	"maps"

	"github.com/jobweaver/jobweaver/migrations"
)

// addresses holds each function's database URL, with its role.
type addresses map[string]string

// admit gives each function a role of its own. On a server that dev did not start it cannot set passwords: there a
// function connects with DATABASE_URL and then sets its role, if it may.
func admit(ctx context.Context, o Options, below *base, urls migrations.URLs) (addresses, error) {
	all := addresses{}
	for _, d := range o.databases(urls) {
		own, err := admitTo(ctx, below, urls, d)
		if migrations.Refused(err) && below.postgres == nil {
			o.show("DATABASE_URL's user may not make roles, or not act as them: all functions have its rights.")
			return o.unaided(urls), nil
		}
		if err != nil {
			return nil, err
		}
		maps.Copy(all, own)
	}
	return all, nil
}

func admitTo(ctx context.Context, below *base, urls migrations.URLs, d database) (addresses, error) {
	passwords := map[string]string{}
	if below.postgres != nil {
		for _, role := range d.set.Roles() {
			passwords[role] = below.postgres.Password(role)
		}
	}
	if err := migrations.Grant(ctx, d.url, d.set, passwords); err != nil {
		return nil, err
	}
	own := addresses{}
	for _, function := range d.set.Functions {
		at, err := urls.As(function, passwords[d.set.Role(function)])
		if below.postgres == nil {
			at, err = migrations.Acting(ctx, d.url, d.set.Role(function))
		}
		if err != nil {
			return nil, err
		}
		own[function] = at
	}
	return own, nil
}

// unaided lets every function connect with DATABASE_URL as it is.
func (o Options) unaided(urls migrations.URLs) addresses {
	all := addresses{}
	for _, d := range o.databases(urls) {
		for _, function := range d.set.Functions {
			all[function] = d.url
		}
	}
	return all
}
