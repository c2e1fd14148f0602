package pgtest

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/testwait"
)

// UntilBlocked waits until a statement waits for a lock in the database that queryRow asks.
func UntilBlocked(t testing.TB, queryRow func(context.Context, string, ...any) pgx.Row) {
	t.Helper()
	testwait.Until(t, "a statement that waits for a lock", func() (blocked bool) {
		err := queryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock')`).Scan(&blocked)
		if err != nil {
			t.Fatal(err)
		}
		return blocked
	})
}
