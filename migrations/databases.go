package migrations

import (
	"context"
	"errors"
	"net/url"
	"slices"

	"github.com/jobweaver/jobweaver/shared/installation"
	"github.com/jobweaver/jobweaver/shared/pgpool"
)

// URLs are the addresses of the three databases on one server.
type URLs struct {
	API, Scheduler, Worker string

	installation installation.Name
}

// EnsureDatabases is Ensure of an installation without a name that has three databases.
func EnsureDatabases(ctx context.Context, serverURL string) (URLs, error) {
	return Layout{}.Ensure(ctx, serverURL)
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
	at.User = url.UserPassword(Set{installation: u.installation}.Role(function), password)
	return at.String(), nil
}
