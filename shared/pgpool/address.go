package pgpool

import (
	"context"
	"errors"
	"maps"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/jobweaver/jobweaver/shared/shortlived"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// errAddress shows no part of the address. pgx hides passwords in its errors as well as it can, but in a broken
// address it cannot know which part is the password.
var errAddress = errors.New("it is not of the form postgres://user:password@host:port/database?sslmode=verify-full " +
	"with values that PostgreSQL knows; in a password write @ as %40, / as %2F, ? as %3F, # as %23 and % as %25")

// fromFile begins an address that stands in a file, and then precedes its parameters there: no path has that.
const (
	fromFile = "file:"
	then     = "\x00"
)

// InFile returns the address that stands in a file. A pool reads the file again for each new connection, so a password
// there may be short-lived.
func InFile(path string) (address string) { return fromFile + path }

// With returns an address with another value of a parameter; dbname is the database.
func With(address, parameter, value string) (string, error) {
	if pool, server, behind := strings.Cut(address, between); behind {
		pool, errPool := With(pool, parameter, value)
		server, errServer := With(server, parameter, value)
		return Behind(pool, server), errors.Join(errPool, errServer)
	}
	if strings.HasPrefix(address, fromFile) {
		path, query, _ := strings.Cut(address, then)
		parameters, _ := url.ParseQuery(query) // that this function wrote
		parameters.Set(parameter, value)
		return path + then + parameters.Encode(), nil
	}
	if !strings.HasPrefix(address, "postgres://") && !strings.HasPrefix(address, "postgresql://") {
		if !strings.Contains(address, "=") {
			return "", errAddress
		}
		return address + " " + parameter + "='" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(value) + "'", nil
	}
	u, err := url.Parse(address)
	if err != nil {
		return "", errAddress
	}
	if parameter == "dbname" {
		u.Path = "/" + value
		return u.String(), nil
	}
	// The last of several counts, and a + is no blank.
	pair := parameter + "=" + strings.ReplaceAll(url.QueryEscape(value), "+", "%20")
	u.RawQuery = strings.TrimPrefix(u.RawQuery+"&"+pair, "&")
	return u.String(), nil
}

// ReadAddress reads the address of a database for a single connection that writes, without a password that is valid for
// a short time. It drops the pool_ parameters, which the server would refuse. Its error shows no part of a password.
func ReadAddress(address string) (*pgx.ConnConfig, error) {
	cfg, _, err := read(address)
	return cfg, err
}

func read(address string) (*pgx.ConnConfig, shortlived.Source, error) {
	cfg, err := parse(ofServer(address), pgx.ParseConfig)
	if err != nil {
		return nil, shortlived.Source{}, err
	}
	maps.DeleteFunc(cfg.RuntimeParams, func(name, _ string) bool { return strings.HasPrefix(name, "pool_") })
	source := takeSource(cfg.RuntimeParams)
	if err := prepare(&cfg.Config); err != nil {
		return nil, source, err
	}
	cfg.ValidateConnect, cfg.AfterConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite, unbounded
	setMissing(cfg.RuntimeParams, meaning)
	if cfg.RuntimeParams["application_name"] == "" {
		Rename(cfg.RuntimeParams, directName)
	}
	return cfg, source, nil
}

// Places returns the hosts of an address as host:port, without Unix sockets.
func Places(address string) (places []string) {
	for one := range strings.SplitSeq(address, between) {
		if cfg, err := ReadAddress(one); err == nil {
			places = append(places, placesOf(cfg)...)
		}
	}
	return places
}

func placesOf(cfg *pgx.ConnConfig) (places []string) {
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
func Connect(ctx context.Context, address string, adjust ...func(*pgx.ConnConfig)) (*pgx.Conn, error) {
	cfg, source, err := read(address)
	if err == nil {
		err = new(answer).fill(ctx, source, cfg)
	}
	if err != nil {
		return nil, err
	}
	for _, a := range adjust {
		a(cfg)
	}
	conn, err := pgx.ConnectConfig(ctx, cfg)
	return conn, pointOut(err)
}

func readPoolAddress(address string) (*pgxpool.Config, error) {
	cfg, err := parse(ofPool(address), pgxpool.ParseConfig)
	if err != nil {
		return nil, err
	}
	takeSource(cfg.ConnConfig.RuntimeParams)
	return cfg, prepare(&cfg.ConnConfig.Config)
}

// parse parses an address, which may stand in a file.
func parse[T any](address string, with func(string) (T, error)) (cfg T, err error) {
	if path, is := strings.CutPrefix(address, fromFile); is {
		if address, err = contentOf(path); err != nil {
			return cfg, err
		}
	}
	ignoreEnvironment()
	if cfg, err = with(address); err != nil {
		return cfg, unreadable(err)
	}
	return cfg, nil
}

// contentOf returns the address in a file with the parameters that follow its path.
func contentOf(path string) (address string, err error) {
	path, query, _ := strings.Cut(path, then)
	text, err := os.ReadFile(path)
	if err != nil {
		return "", errors.New(err.Error()) // without its cause, which looks like an error of the network
	}
	address = strings.TrimSpace(string(text))
	parameters, _ := url.ParseQuery(query)
	for parameter := range parameters {
		if address, err = With(address, parameter, parameters.Get(parameter)); err != nil {
			return "", err
		}
	}
	return address, nil
}

// libpq are the variables of the environment with which libpq and pgx complete an address or replace its parts.
var libpq = []string{
	"PGHOST", "PGPORT", "PGDATABASE", "PGUSER", "PGPASSWORD", "PGPASSFILE", "PGAPPNAME", "PGCONNECT_TIMEOUT", "PGSSLMODE",
	"PGSSLKEY", "PGSSLCERT", "PGSSLCERTMODE", "PGSSLSNI", "PGSSLROOTCERT", "PGSSLPASSWORD", "PGSSLNEGOTIATION",
	"PGTARGETSESSIONATTRS", "PGSERVICE", "PGSERVICEFILE", "PGTZ", "PGOPTIONS", "PGMINPROTOCOLVERSION",
	"PGMAXPROTOCOLVERSION", "PGCHANNELBINDING", "PGREQUIREAUTH",
}

// ignoreEnvironment removes libpq's variables from the environment of the process. Shells, direnv and CI services set
// them for other programs, and a wrong one makes pgx refuse an address that is right. pgx has no option against that.
func ignoreEnvironment() {
	var found []string
	for _, name := range libpq {
		if _, set := os.LookupEnv(name); set && os.Unsetenv(name) == nil {
			found = append(found, name)
		}
	}
	if len(found) > 0 {
		ctx := context.Background()
		telemetry.Logger(ctx).WarnContext(ctx,
			"variables of libpq have no effect: the address of the database alone counts", "variables", found)
	}
}

// prepare sets how connections are made.
func prepare(cfg *pgconn.Config) error {
	cfg.DialFunc = dialer().DialContext
	return astray(cfg)
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
			return errors.New(inner.Error()) // without its cause, which looks like an error of the network
		}
	}
	return errAddress
}
