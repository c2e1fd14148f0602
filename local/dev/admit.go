package dev

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/jobweaver/jobweaver/migrations"
)

// addresses are where each function finds its database, and as whom.
type addresses map[string]string

// admit gives each function a role of its own. On somebody's server the passwords are somebody's: there a function
// comes in as DATABASE_URL says and then takes its role on, if it may.
func admit(ctx context.Context, o Options, below *base, urls migrations.URLs) (addresses, error) {
	all := addresses{}
	for _, d := range databases(urls) {
		own, err := admitTo(ctx, below, urls, d)
		if refused(err) && below.postgres == nil {
			o.say("DATABASE_URL's user may not make roles, or not act as them: all functions have its rights.")
			return unaided(urls), nil
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
		at, err := urls.As(function, passwords[migrations.Role(function)])
		if below.postgres == nil {
			at, err = acting(ctx, d.url, migrations.Role(function))
		}
		if err != nil {
			return nil, err
		}
		own[function] = at
	}
	return own, nil
}

// acting is an address at which whoever it names acts as a role, tried once.
func acting(ctx context.Context, address, role string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", errors.New("the database's address is no URL") // the parser's error would print the password
	}
	parameters := u.Query()
	parameters.Set("role", role)
	u.RawQuery = parameters.Encode()
	conn, err := pgx.Connect(ctx, u.String())
	if err != nil {
		return "", fmt.Errorf("act as %s: %w", role, err)
	}
	return u.String(), conn.Close(ctx)
}

// unaided has every function come in as DATABASE_URL says.
func unaided(urls migrations.URLs) addresses {
	all := addresses{}
	for _, d := range databases(urls) {
		for _, function := range d.set.Functions {
			all[function] = d.url
		}
	}
	return all
}

// refused reports whether PostgreSQL does not let us: insufficient privilege, or a role that we may not set.
func refused(err error) bool {
	var said *pgconn.PgError
	return errors.As(err, &said) && (said.Code == "42501" || said.Code == "22023")
}
