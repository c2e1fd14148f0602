package apidb

import (
	"testing"

	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

// A server that a failover has left behind would still accept revoked keys.
func TestTheSessionOfAuthenticationLeavesAServerThatIsReadOnly(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), pgtest.Database(t, migrations.API))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	if _, err := s.keys.Exec(t.Context(), "SET default_transaction_read_only = on"); err != nil {
		t.Fatal(err)
	}
	if err := s.Ping(t.Context()); pgpool.Outage(err) != "the database accepts no writes" {
		t.Fatal(err)
	}
	if err := s.Ping(t.Context()); err != nil {
		t.Error(err)
	}
}
