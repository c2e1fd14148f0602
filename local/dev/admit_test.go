package dev

import (
	"bytes"
	"cmp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/infra/laptop/localpostgres"
	"github.com/jobweaver/jobweaver/migrations"
)

func TestFunctionsConnectAsTheirRolesOrPrintWhyTheyCannot(t *testing.T) {
	t.Parallel()
	server, err := localpostgres.Start(t.Context(), localpostgres.Config{Dir: t.TempDir(), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	owner := strings.Replace(server.URL(), strings.SplitAfter(server.URL(), "@")[0], "postgres://owner:owner@", 1)
	conn, err := pgx.Connect(t.Context(), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	if _, err := conn.Exec(t.Context(), "CREATE ROLE owner LOGIN CREATEDB PASSWORD 'owner'"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name          string
		below         base
		session, role string // empty: the function's own
		lines         int
	}{
		{"owner of a foreign server", base{database: owner}, "owner", "owner", 1},
		{"superuser of a foreign server", base{database: server.URL()}, "postgres", "", 0},
		{"private server", base{database: server.URL(), postgres: server}, "", "", 0},
	} {
		var out bytes.Buffer
		at, err := furnish(t.Context(), Options{Out: &out}, &c.below)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if lines := strings.Count(out.String(), "\n"); lines != c.lines || strings.Contains(out.String(), "owner:") {
			t.Errorf("%s prints %q", c.name, &out)
		}
		if len(at) != 13 {
			t.Errorf("%s: there are addresses for %d functions", c.name, len(at))
		}
		for function, address := range at {
			own := migrations.Role(function)
			wantWhoIs(t, c.name+": "+function, address, cmp.Or(c.session, own), cmp.Or(c.role, own))
		}
	}
}

// wantWhoIs checks the session user and the role of an address.
func wantWhoIs(t *testing.T, name, address, session, role string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	defer func() { _ = conn.Close(t.Context()) }()
	var isSession, isRole string
	err = conn.QueryRow(t.Context(), "SELECT session_user, current_user").Scan(&isSession, &isRole)
	if err != nil || isSession != session || isRole != role {
		t.Errorf("%s is %s as %s, want %s as %s (%v)", name, isSession, isRole, session, role, err)
	}
}
