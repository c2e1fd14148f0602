package doctor

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/jobweaver/jobweaver/infra/laptop/localpostgres"
	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/pgtest/pgbouncer"
	"github.com/jobweaver/jobweaver/shared/secret"
	"github.com/jobweaver/jobweaver/shared/testwait"
)

// server starts a PostgreSQL of the test's own, with an installation as serve makes it.
func server(t *testing.T, settings map[string]string) (i *Installation, admin string) {
	t.Helper()
	return serverWith(t, migrations.Layout{}, settings)
}

func serverWith(t *testing.T, layout migrations.Layout, settings map[string]string) (i *Installation, admin string) {
	t.Helper()
	if testing.Short() {
		t.Skip("a server of its own: the tests on the common one look for races")
	}
	s, err := localpostgres.Start(t.Context(), localpostgres.Config{Dir: t.TempDir(), Settings: settings})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop() })
	i = installation(t)
	urls, err := layout.Ensure(t.Context(), s.URL())
	if err != nil {
		t.Fatal(err)
	}
	for n, set := range layout.Sets() {
		address := urls.Of(set.Functions[0])
		if err := migrations.Up(t.Context(), address, set, nil); err != nil {
			t.Fatal(err)
		}
		if err := migrations.GrantService(t.Context(), address, set, nil); err != nil {
			t.Fatal(err)
		}
		i.Databases[n].Set, i.Databases[n].Address = set, secret.Of(address)
	}
	return i, s.URL()
}

// Autovacuum takes transaction ids of its own.
func TestAHealthyInstallationHasNoFindingsAndIsNotChanged(t *testing.T) {
	t.Parallel()
	for _, layout := range []migrations.Layout{{}, {Installation: "shop", Schemas: true}} {
		t.Run(fmt.Sprintf("%+v", layout), func(t *testing.T) { checkHealthy(t, layout) })
	}
}

func checkHealthy(t *testing.T, layout migrations.Layout) {
	t.Helper()
	t.Parallel()
	i, admin := serverWith(t, layout, map[string]string{"autovacuum_naptime": "1h"})
	next := func() string { return query(t, admin, "pg_snapshot_xmax(pg_current_snapshot())") }
	before := next()
	for _, r := range Run(t.Context(), i, nil) {
		if len(r.Findings) > 0 || r.Looks == "" {
			t.Errorf("%s: %+v", r.Check, r.Findings)
		}
		for _, what := range r.Unseen {
			if !strings.Contains(what, "clocks of the brokers") && !strings.Contains(what, "archive_mode is off") {
				t.Errorf("%s: not seen: %s", r.Check, what)
			}
		}
	}
	if after := next(); after != before {
		t.Errorf("transactions have written: the next number was %s and is %s", before, after)
	}
	testwait.Until(t, "all sessions have ended", func() bool { // the server ends them after the client has gone
		return query(t, admin, "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'jobweaver%'") == "0"
	})
}

// A right too many, a right too few, and a migration that is missing are those of the installation, wherever it is.
func TestFaultsOfANamedInstallationAndOfSchemasAreFound(t *testing.T) {
	t.Parallel()
	for _, layout := range []migrations.Layout{{Installation: "shop"}, {Schemas: true}} {
		t.Run(fmt.Sprintf("%+v", layout), func(t *testing.T) {
			t.Parallel()
			i, _ := serverWith(t, layout, nil)
			api, worker := i.Databases[0], i.Databases[2]
			bulk, runjob := api.Set.Role("bulk"), worker.Set.Role("runjob")
			exec(t, api.Address.Reveal(), "REVOKE SELECT ON operations FROM "+bulk)
			exec(t, worker.Address.Reveal(), "GRANT TRUNCATE ON execution_attempts TO "+runjob)
			exec(t, worker.Address.Reveal(), "DELETE FROM goose_db_version WHERE version_id = (SELECT max(version_id) FROM goose_db_version)")
			text := fmt.Sprint(of(t, i, "rights").Findings)
			for _, want := range []string{runjob + " needs no TRUNCATE on execution_attempts", bulk + " lacks SELECT on operations"} {
				if !strings.Contains(text, want) {
					t.Errorf("%q is not in %s", want, text)
				}
			}
			if found := of(t, i, "versions").Findings; len(found) != 1 {
				t.Errorf("%+v", found)
			}
		})
	}
}

// A check that cannot look passes nothing as good.
func TestChecksOfDatabasesThatDoNotAnswerAreUnseen(t *testing.T) {
	t.Parallel()
	i := installation(t)
	for n := range i.Databases {
		i.Databases[n].Address = secret.Of("postgres://away@127.0.0.1:1/none")
	}
	for _, r := range Run(t.Context(), i, nil) {
		ofDatabases := !slices.Contains([]string{"settings", "database", "topics", "tls"}, r.Check)
		if r.Partial != ofDatabases || ofDatabases && len(r.Unseen) < len(i.Databases) {
			t.Errorf("%s: partial: %t, not seen: %v", r.Check, r.Partial, r.Unseen)
		}
	}
}

func TestFaultsOfAServerAreFound(t *testing.T) {
	t.Parallel()
	i, admin := server(t, map[string]string{
		"fsync": "off", "autovacuum": "off", "archive_mode": "on", "archive_command": "false", "max_prepared_transactions": "1",
	})
	exec(t, admin, "ALTER ROLE jobweaver_cron CREATEDB", "GRANT pg_read_all_data TO jobweaver_pull", "DROP ROLE jobweaver_scheduler",
		"CREATE TABLE t (); SELECT pg_switch_wal()")
	exec(t, i.api(), "BEGIN; CREATE TABLE t (); PREPARE TRANSACTION 'forgotten'")
	testwait.Until(t, "archiving to fail", func() bool {
		return query(t, admin, "SELECT failed_count > 0 FROM pg_stat_archiver") == "true"
	})
	i.limits.open = 0
	found := map[string]string{}
	for _, r := range Run(t.Context(), i, nil) {
		for _, f := range r.Findings {
			found[r.Check] += f.What + "\n"
		}
	}
	for check, wants := range map[string][]string{
		"rights": {
			"jobweaver_cron has CREATEDB", "jobweaver_pull is a member of pg_read_all_data", "there is no role jobweaver_scheduler",
		},
		"postgres": {"fsync is off", "autovacuum is off"},
		"vacuum":   {"prepared transaction"},
		"backup":   {"archiving the log fails"},
	} {
		for _, want := range wants {
			if !strings.Contains(found[check], want) {
				t.Errorf("%s found %q, want %s", check, found[check], want)
			}
		}
	}
}

func TestFaultsOfAPoolerAreFound(t *testing.T) {
	t.Parallel()
	i, admin := server(t, nil)
	other, _ := server(t, nil)
	pooled := address(t, pgbouncer.Start(t, admin, "transaction"))
	direct := i.api()
	i.Databases = i.Databases[:1]
	plain := pgpool.Behind(pooled, direct)
	for name, c := range map[string]struct{ address, want string }{
		"an address that leads to a pooler":   {pooled, "DATABASE_DIRECT_URL"},
		"a server's address that leads to it": {pgpool.Behind(pooled, pooled), ""},
		"a role without settings":             {plain, "settings of its sessions"},
		"a pooler that leads elsewhere":       {pgpool.Behind(pooled, other.api()), "leads to another database"},
		"a pooler that does not answer":       {pgpool.Behind(strings.Replace(pooled, u(t, pooled), "127.0.0.1:1", 1), direct), "the pooler cannot be used"},
	} {
		i.Databases[0].Address = secret.Of(c.address)
		check := "pooler"
		if name == "an address that leads to a pooler" || c.want == "" { // PgBouncer refuses the session's parameters
			check = "database"
		}
		if r := of(t, i, check); !found(r, c.want) {
			t.Errorf("%s: %+v, not seen: %v", name, r.Findings, r.Unseen)
		}
	}
	pool, err := pgpool.Open(t.Context(), plain, pgpool.ApplicationName("jobweaver-api"), pgpool.IndexOnly(), pgpool.PlannedOnce())
	if err != nil {
		t.Fatal(err)
	}
	pool.Close()
	i.Databases[0].Address = secret.Of(plain)
	if r := of(t, i, "pooler"); len(r.Findings)+len(r.Unseen) > 0 {
		t.Errorf("a pooler with all settings: %+v, not seen: %v", r.Findings, r.Unseen)
	}
	exec(t, admin, "DROP ROLE jobweaver_api") // which serve does not take behind a pooler
	if r := of(t, i, "rights"); len(r.Findings)+len(r.Unseen) > 0 {
		t.Errorf("the rights behind a pooler: %+v, not seen: %v", r.Findings, r.Unseen)
	}
	exec(t, pooled+"&default_query_exec_mode=exec", "SET lock_timeout = '99s'")
	if r := of(t, i, "pooler"); !found(r, "another lock_timeout") {
		t.Errorf("a session that another client has changed: %+v, not seen: %v", r.Findings, r.Unseen)
	}
}

// address returns the address of the api's database by a pooler.
func address(t *testing.T, pooler string) string {
	t.Helper()
	at, err := migrations.WithDatabase(pooler, migrations.API.Database())
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func u(t *testing.T, address string) (host string) {
	t.Helper()
	parsed, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return parsed.Host
}
