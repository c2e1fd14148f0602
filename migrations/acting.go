package migrations

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/jobweaver/jobweaver/shared/pgpool"
)

// Acting returns an address at which the user of address sets a role, after trying it once.
func Acting(ctx context.Context, address, role string) (string, error) {
	address, err := pgpool.With(address, "role", role)
	if err != nil {
		return "", err
	}
	conn, err := pgpool.Connect(ctx, address)
	if err != nil {
		return "", fmt.Errorf("act as %s: %w", role, err)
	}
	return address, conn.Close(ctx)
}

// Refused reports whether PostgreSQL refuses: insufficient privilege, or a role that the user may not set.
func Refused(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && (pgErr.Code == insufficientPrivilege || pgErr.Code == "22023")
}
