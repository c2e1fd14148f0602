package migrations

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/jobweaver/jobweaver/shared/pgpool"
)

// URLs are the addresses of the three databases on one server.
type URLs struct{ API, Scheduler, Worker string }

// creating is an advisory lock: two concurrent CREATE DATABASE may fail each other.
const creating = 0x6a77_6462

// EnsureDatabases creates those of the three databases that the server lacks and returns their addresses: serverURL
// with another database name.
func EnsureDatabases(ctx context.Context, serverURL string) (urls URLs, err error) {
	for set, to := range map[*Set]*string{&API: &urls.API, &Scheduler: &urls.Scheduler, &Worker: &urls.Worker} {
		if *to, err = WithDatabase(serverURL, set.Database()); err != nil {
			return URLs{}, err
		}
	}
	conn, err := pgpool.Connect(ctx, serverURL)
	if err != nil {
		return URLs{}, fmt.Errorf("create databases: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }() // closing releases the lock
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1)", creating); err != nil {
		return URLs{}, fmt.Errorf("create databases: %w", err)
	}
	for i, set := range sets {
		err := ensureDatabase(ctx, conn, set.Database())
		if refused := (*pgconn.PgError)(nil); errors.As(err, &refused) && refused.Code == insufficientPrivilege {
			return URLs{}, fmt.Errorf("%w: an administrator of the server can, by\n%s", err,
				creation(conn.Config().User, sets[i:]))
		}
		if err != nil {
			return URLs{}, fmt.Errorf("create database %s: %w", set.Database(), err)
		}
	}
	return urls, nil
}

var sets = []Set{API, Scheduler, Worker}

const insufficientPrivilege = "42501"

// creation returns the SQL by which an administrator creates databases for a user.
func creation(user string, sets []Set) string {
	var statements []string
	for _, set := range sets {
		statements = append(statements, "CREATE DATABASE "+set.Database()+" OWNER "+pgx.Identifier{user}.Sanitize()+";")
	}
	return strings.Join(statements, "\n")
}

func ensureDatabase(ctx context.Context, conn *pgx.Conn, name string) error {
	var there bool
	err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", name).Scan(&there)
	if err != nil || there {
		return err
	}
	_, err = conn.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize())
	return err
}

// WithDatabase returns serverURL with another database name.
func WithDatabase(serverURL, name string) (string, error) {
	return pgpool.With(serverURL, "dbname", name)
}

// Of returns the address of a function's database.
func (u URLs) Of(function string) string {
	switch {
	case slices.Contains(API.Functions, function):
		return u.API
	case slices.Contains(Scheduler.Functions, function):
		return u.Scheduler
	case slices.Contains(Worker.Functions, function):
		return u.Worker
	}
	return ""
}

// As returns the address of a function's database with the function's own role.
func (u URLs) As(function, password string) (string, error) {
	at, err := url.Parse(u.Of(function))
	if err != nil {
		return "", errors.New("the server's address is not a URL") // the parser's error would print the password
	}
	at.User = url.UserPassword(Role(function), password)
	return at.String(), nil
}
