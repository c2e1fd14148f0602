package pgpool_test

import (
	"testing"

	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

func TestFunctionsOfAProcessShareAPoolOfTheSameAddressAndOptions(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t, migrations.Worker)
	ctx := pgpool.Sharing(t.Context())
	first, err := pgpool.Open(ctx, url, pgpool.ApplicationName("a"))
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	second, err := pgpool.Open(ctx, url, pgpool.ApplicationName("a"))
	if err != nil {
		t.Fatal(err)
	}
	second.Close() // does no harm twice
	if first != second {
		t.Error("each has a pool of its own")
	}
	if n := first.Config().MaxConns; n < 10 {
		t.Errorf("the pool of several functions has %d connections", n)
	}
	other, err := pgpool.Lazy(ctx, url, pgpool.ApplicationName("a"), pgpool.IndexOnly())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	own, err := pgpool.Lazy(ctx, url+"&pool_max_conns=3", pgpool.ApplicationName("a"))
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	alone, err := pgpool.Lazy(t.Context(), url, pgpool.ApplicationName("a"))
	if err != nil {
		t.Fatal(err)
	}
	defer alone.Close()
	if other == first || own == first || alone == first {
		t.Error("pools with other options are shared")
	}
	if n := own.Config().MaxConns; n != 3 {
		t.Errorf("pool_max_conns is 3, and the pool has %d connections", n)
	}
}
