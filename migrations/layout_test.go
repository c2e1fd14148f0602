package migrations_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/jobweaver/jobweaver/infra/laptop/localpostgres"
	"github.com/jobweaver/jobweaver/migrations"
)

// layouts are all on one server, those with schemas in one database.
var layouts = []migrations.Layout{{}, {Installation: "shop"}, {Schemas: true}, {Installation: "shop_eu", Schemas: true}}

func TestInstallationsOnOneServerHaveRolesAndTablesOfTheirOwn(t *testing.T) {
	t.Parallel()
	server, err := localpostgres.Start(t.Context(), localpostgres.Config{Dir: t.TempDir(), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	admin := connect(t, server.URL())
	// Not a superuser, as on a rented PostgreSQL, and not the owner of the database for the schemas.
	for _, statement := range []string{
		"CREATE ROLE boss LOGIN CREATEDB CREATEROLE PASSWORD 'boss'", "CREATE DATABASE given",
		"GRANT CREATE ON DATABASE given TO boss",
	} {
		exec(t, admin, statement)
	}
	boss, err := migrations.WithDatabase(
		strings.Replace(server.URL(), strings.SplitAfter(server.URL(), "@")[0], "postgres://boss:boss@", 1), "given")
	if err != nil {
		t.Fatal(err)
	}
	type member struct {
		layout, set, function int
		url                   string
	}
	var members []member
	for range 2 { // the second time changes nothing
		members = nil
		for n, layout := range layouts {
			urls, err := layout.Ensure(t.Context(), boss)
			if err != nil {
				t.Fatal(err)
			}
			var all errgroup.Group
			for m, set := range layout.Sets() {
				passwords := map[string]string{}
				for i, function := range set.Functions {
					passwords[set.Role(function)] = "of " + set.Role(function)
					url, err := urls.As(function, passwords[set.Role(function)])
					if err != nil {
						t.Fatal(err)
					}
					members = append(members, member{n, m, i, url})
				}
				url := urls.Of(set.Functions[0])
				all.Go(func() error {
					if err := migrations.Up(t.Context(), url, set, nil); err != nil {
						return err
					}
					return migrations.GrantService(t.Context(), url, set, passwords)
				})
			}
			if err := all.Wait(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, m := range members {
		set := layouts[m.layout].Sets()[m.set]
		conn := connect(t, m.url)
		var role, tables string
		if err := conn.QueryRow(t.Context(), `SELECT current_user, string_agg(DISTINCT nspname, ' ' ORDER BY nspname) FROM pg_class
			JOIN pg_namespace ON pg_namespace.oid = relnamespace WHERE nspname !~ '^(pg_|information_schema)' AND relkind = 'r'
				AND has_schema_privilege(nspname, 'USAGE') AND (has_table_privilege(pg_class.oid, 'SELECT, INSERT, UPDATE, DELETE')
					OR has_any_column_privilege(pg_class.oid, 'SELECT, INSERT, UPDATE'))`).Scan(&role, &tables); err != nil {
			t.Fatal(err)
		}
		want := "public"
		if layouts[m.layout].Schemas {
			want = set.Database()
		}
		if role != set.Role(set.Functions[m.function]) || tables != want {
			t.Errorf("%s, which has tables of %s, is in %s", role, tables, want)
		}
		if _, err := conn.Exec(t.Context(), "CREATE TABLE mine ()"); !isDenied(err) {
			t.Errorf("%s makes a table: %v", role, err)
		}
		_ = conn.Close(t.Context())
	}
	var services string
	if err := admin.QueryRow(t.Context(), `SELECT string_agg(rolname, ' ' ORDER BY rolname) FROM pg_roles
		WHERE rolname LIKE '%jobweaver\_api' AND rolcanlogin`).Scan(&services); err != nil || services != "jobweaver_api shop_eu_jobweaver_api shop_jobweaver_api" {
		t.Errorf("the services of the api log in as %s, %v", services, err)
	}
	exec(t, admin, "CREATE ROLE app LOGIN PASSWORD 'app'")
	app := connect(t, strings.Replace(boss, "boss:boss@", "app:app@", 1)) // the database has other users, too
	if _, err := app.Exec(t.Context(), "SELECT count(*) FROM jobweaver_api.jobs"); !isDenied(err) {
		t.Errorf("another user of the database reads jobs: %v", err)
	}
	var astray int
	if err := app.QueryRow(t.Context(), `SELECT count(*) FROM pg_proc
		WHERE prosrc LIKE '%public.%' AND pronamespace <> 'public'::regnamespace AND oid >= 16384`).Scan(&astray); err != nil || astray != 0 {
		t.Errorf("%d functions in schemas name tables of public, %v", astray, err)
	}
	for of, database := range map[int]string{0: "shop_jobweaver_api", 13: "jobweaver_api"} {
		elsewhere, err := migrations.WithDatabase(members[of].url, database)
		if err != nil {
			t.Fatal(err)
		}
		if conn, err := pgx.Connect(t.Context(), elsewhere); !isDenied(err) {
			t.Errorf("the role of %s connects to %s: %v, %v", members[of].url, database, conn, err)
		}
	}
}
