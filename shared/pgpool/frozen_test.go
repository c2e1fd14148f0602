package pgpool_test

import (
	"net"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

// Other transactions wait for these locks.
func TestASessionThatFreezesInATransactionLosesItsLocks(t *testing.T) {
	t.Parallel()
	const within = 8 * time.Second
	half := message(t, &pgproto3.Parse{Query: "SELECT 1"})[:8]
	for name, unread := range map[string][]byte{
		"between two round trips":      nil,
		"while it is sent rows":        message(t, &pgproto3.Query{String: "SELECT repeat('x', 10000) FROM generate_series(1, 10000)"}),
		"in the middle of a statement": half,
		"in the middle of several statements": slices.Concat(
			message(t, &pgproto3.Parse{Query: "SELECT 1"}), message(t, &pgproto3.Bind{}), message(t, &pgproto3.Execute{}), half),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := pgtest.Database(t, migrations.API)
			others := open(t, url)
			exec(t, others, "CREATE TABLE t (n int); INSERT INTO t VALUES (1)")
			wire := locked(t, url, "SELECT n FROM t FOR UPDATE")
			if _, err := wire.Write(unread); err != nil {
				t.Fatal(err)
			}
			for began := time.Now(); ; {
				_, err := others.Exec(t.Context(), "UPDATE t SET n = n + 1")
				if err == nil {
					break
				}
				if !pgpool.IsUnavailable(err) || time.Since(began) > within {
					t.Fatalf("after %s: %v", time.Since(began), err)
				}
			}
		})
	}
}

// locked returns the raw connection of a session that has run a statement in a transaction, so that a test can send and
// not read.
func locked(t *testing.T, url, sql string) net.Conn {
	t.Helper()
	conn, err := open(t, url, pgpool.TransactionTimeout(4*time.Second)).Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	raw := conn.Hijack()
	if _, err := raw.Exec(t.Context(), "BEGIN; "+sql); err != nil {
		t.Fatal(err)
	}
	wire, err := raw.PgConn().Hijack()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = wire.Conn.Close() })
	return wire.Conn
}

func message(t *testing.T, m pgproto3.FrontendMessage) []byte {
	t.Helper()
	encoded, err := m.Encode(nil)
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}
