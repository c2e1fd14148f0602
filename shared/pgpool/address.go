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

// errAddress has nothing of the address in it. pgx hides passwords in its errors as well as it can, but where an
// address is broken it cannot know which part of it is the password.
var errAddress = errors.New("it is not of the form postgres://user:password@host:port/database?sslmode=verify-full " +
	"with values that PostgreSQL knows; in a password write @ as %40, / as %2F, ? as %3F, # as %23 and % as %25")

// ReadAddress reads the address of a database; what it says of a pool is not for one connection, and the server would
// refuse it. Its error shows nothing of a password.
func ReadAddress(url string) (*pgx.ConnConfig, error) {
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, unreadable(err)
	}
	cfg.DialFunc = dialer().DialContext
	maps.DeleteFunc(cfg.RuntimeParams, func(name, _ string) bool { return strings.HasPrefix(name, "pool_") })
	return cfg, astray(&cfg.Config)
}

// Places are the hosts of an address, each with its port; none for a socket of this machine.
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

// Connect opens one connection, without what Open does for a pool.
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

// astray refuses an address that was cut in a wrong place, so that what was meant as a password is taken for something
// else: errors and the server's log show that.
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

// unreadable keeps what is said of certificates, which names files only.
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
