package migrations

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/jobweaver/jobweaver/shared/pgpool"
)

// Acting returns an address at which the user of address sets a role, after trying it once.
func Acting(ctx context.Context, address, role string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", errors.New("the database's address is not a URL") // the parser's error would print the password
	}
	parameters := u.Query()
	parameters.Set("role", role)
	u.RawQuery = parameters.Encode()
	conn, err := pgpool.Connect(ctx, u.String())
	if err != nil {
		return "", fmt.Errorf("act as %s: %w", role, err)
	}
	return u.String(), conn.Close(ctx)
}

// Refused reports whether PostgreSQL refuses: insufficient privilege, or a role that the user may not set.
func Refused(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && (pgErr.Code == insufficientPrivilege || pgErr.Code == "22023")
}
