package migrations

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/pgpool"
)

// ServiceRole is the role of a process that runs all functions of the set: it has the rights of each.
func (s Set) ServiceRole() string { return s.installation.InPostgres("jobweaver_" + s.Name) }

// GrantService is Grant, and creates the set's ServiceRole, which the user of url may then set. The role may log in if
// passwords is not nil, also without a password.
func GrantService(ctx context.Context, url string, set Set, passwords map[string]string) (err error) {
	if err := Grant(ctx, url, set, passwords); err != nil {
		return err
	}
	conn, err := pgpool.Connect(ctx, url)
	if err != nil {
		return fmt.Errorf("make role of %s: %w", set.Name, err)
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	role, members := quoted(set.ServiceRole()), strings.Join(set.Roles(), ", ")
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", granting); err != nil {
			return err
		}
		there, err := texts(ctx, tx, "SELECT rolname FROM pg_roles WHERE rolname = $1", set.ServiceRole())
		if err != nil {
			return err
		}
		if len(there) == 0 {
			if _, err := tx.Exec(ctx, "CREATE ROLE "+role+" NOLOGIN"); err != nil {
				return err
			}
		}
		if passwords != nil {
			if _, err := tx.Exec(ctx, "ALTER ROLE "+role+" LOGIN"); err != nil {
				return err
			}
			if err := setPassword(ctx, tx, set.ServiceRole(), passwords); err != nil {
				return err
			}
		}
		_, err = tx.Exec(ctx, "GRANT "+members+" TO "+role+"; GRANT "+role+" TO CURRENT_USER")
		return err
	})
	if err != nil {
		return fmt.Errorf("make role of %s: %w", set.Name, err)
	}
	return nil
}
