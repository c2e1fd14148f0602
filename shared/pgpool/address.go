package pgpool

import (
	"context"
	"errors"
	"maps"
	"net"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// errAddress shows no part of the address. pgx hides passwords in its errors as well as it can, but in a broken
// address it cannot know which part is the password.
var errAddress = errors.New("it is not of the form postgres://user:password@host:port/database?sslmode=verify-full " +
	"with values that PostgreSQL knows; in a password write @ as %40, / as %2F, ? as %3F, # as %23 and % as %25")

// ReadAddress reads the address of a database for a single connection. It drops the pool_ parameters, which the server
// would refuse. Its error shows no part of a password.
func ReadAddress(url string) (*pgx.ConnConfig, error) {
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, unreadable(err)
	}
	cfg.DialFunc = dialer().DialContext
	maps.DeleteFunc(cfg.RuntimeParams, func(name, _ string) bool { return strings.HasPrefix(name, "pool_") })
	return cfg, astray(&cfg.Config)
}

// Places returns the hosts of an address as host:port, without Unix sockets.
func Places(url string) (places []string) {
	cfg, err := ReadAddress(url)
	if err != nil {
		return nil
	}
	add := func(host string, port uint16) {
		if !strings.HasPrefix(host, "/") {
			places = append(places, net.JoinHostPort(host, strconv.Itoa(int(port))))
		}
	}
	add(cfg.Host, cfg.Port)
	for _, other := range cfg.Fallbacks {
		add(other.Host, other.Port)
	}
	return places
}

// Connect opens one connection, without the options and timeouts that Open gives a pool.
func Connect(ctx context.Context, url string) (*pgx.Conn, error) {
	cfg, err := ReadAddress(url)
	if err != nil {
		return nil, err
	}
	return pgx.ConnectConfig(ctx, cfg)
}

func readPoolAddress(url string) (*pgxpool.Config, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, unreadable(err)
	}
	cfg.ConnConfig.DialFunc = dialer().DialContext
	return cfg, astray(&cfg.ConnConfig.Config)
}

// astray refuses an address that was split in the wrong place, so that part of the password became a host, a database
// or a parameter. Errors and the server's log show those.
func astray(cfg *pgconn.Config) error {
	for name := range cfg.RuntimeParams {
		if strings.Contains(name, "@") {
			return errAddress
		}
	}
	if strings.ContainsAny(cfg.Database+cfg.Host, "@") {
		return errAddress
	}
	return nil
}

// unreadable returns pgx's errors about certificates, which name files only, and errAddress in place of any other.
func unreadable(err error) error {
	inner := errors.Unwrap(err)
	if inner == nil {
		return errAddress
	}
	for _, about := range []string{
		"unable to read", "unable to load", "unable to add", "unable to decrypt", "failed to decode sslkey", `both "sslcert"`,
	} {
		if strings.HasPrefix(inner.Error(), about) {
			return inner
		}
	}
	return errAddress
}
