// Package outboxdb is the outbox in a user's own PostgreSQL: its schema, and the operations of relays and people on its
// rows.
package outboxdb

import (
	"context"
	_ "embed" // outbox.sql
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/pgpool"
)

//go:embed outbox.sql
var schema string

// Roles are database roles that get rights on the outbox: those of the application, which may only insert, and those of
// relays. They have to exist.
type Roles struct {
	Enqueue, Relay []string
}

// SQL returns the statements that install the outbox, or bring it up to date, and grant rights to roles.
func SQL(roles Roles) string {
	var sql strings.Builder
	sql.WriteString(schema)
	for _, role := range roles.Enqueue {
		grant(&sql, role, "it may insert, and read nothing",
			"grant usage on schema jobweaver to %s;",
			"grant insert (id, job_type, payload, options) on jobweaver.outbox to %s;",
			"grant execute on function jobweaver.new_id(), jobweaver.enqueue(text, jsonb, jsonb) to %s;")
	}
	for _, role := range roles.Relay {
		// Locking a row requires the right to update a column. The column position allows only a newly generated value.
		grant(&sql, role, "it takes rows, and puts rejected ones back",
			"grant usage on schema jobweaver to %s;",
			"grant select, delete, insert (id, job_type, payload, options), update (position) on jobweaver.outbox to %s;",
			"grant select, insert, update, delete on jobweaver.outbox_rejected to %s;",
			"grant execute on function jobweaver.new_id() to %s;")
	}
	return sql.String()
}

func grant(sql *strings.Builder, role, why string, statements ...string) {
	fmt.Fprintf(sql, "\n-- %s: %s.\n", strings.ReplaceAll(role, "\n", " "), why)
	for _, statement := range statements {
		fmt.Fprintf(sql, statement+"\n", pgx.Identifier{role}.Sanitize())
	}
}

// Install runs SQL in one transaction. It gives up when it has waited for a lock for 5 s, because the application would
// wait behind it.
func Install(ctx context.Context, url string, roles Roles) error {
	conn, err := pgpool.Connect(ctx, url)
	if err != nil {
		return fmt.Errorf("install the outbox: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		// One at a time: of two processes that create the same schema, one would fail.
		const alone = "set local lock_timeout = '5s'; select pg_advisory_xact_lock(1785164650, 3)"
		if _, err := tx.Exec(ctx, alone); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, SQL(roles))
		return err
	})
	if err != nil {
		return fmt.Errorf("install the outbox: %w", err)
	}
	return nil
}
