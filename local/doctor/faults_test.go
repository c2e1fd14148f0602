package doctor

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/local/kept"
	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/certtest"
	"github.com/jobweaver/jobweaver/shared/pgtest"
	"github.com/jobweaver/jobweaver/shared/secret"
)

// fault is what a test plants for a check to find.
type fault struct {
	check string
	plant func(t *testing.T, i *Installation)
	want  string // in a finding
}

// api returns the address of the first database.
func (i *Installation) api() string { return i.Databases[0].Address.Reveal() }

func sql(statements ...string) func(*testing.T, *Installation) {
	return func(t *testing.T, i *Installation) { exec(t, i.api(), statements...) }
}

func env(change func(*Environment)) func(*testing.T, *Installation) {
	return func(_ *testing.T, i *Installation) { change(&i.Environments[0]) }
}

func limit(change func(*limits)) func(*testing.T, *Installation) {
	return func(_ *testing.T, i *Installation) { change(&i.limits) }
}

var faults = map[string]fault{
	"a setting that cannot be read": {
		"settings", env(func(e *Environment) { e.Wrong = []error{errors.New(`PORT: "a" must be a whole number`)} }), "PORT:",
	},
	"a setting that is misspelled": {
		"settings", env(func(e *Environment) { e.Misspelt = []string{"AUHT (did you mean AUTH?)"} }), "AUHT",
	},
	"queues that only one function has": {"settings", func(_ *testing.T, i *Installation) {
		other := i.Environments[0]
		i.Environments[0].Name, other.Name = "gateway", "cron"
		other.Host.Queues = []string{"other"}
		i.Environments = append(i.Environments, other)
	}, "QUEUES is not that of gateway"},

	"a database that is stopped": {"database", func(_ *testing.T, i *Installation) {
		i.Databases[0].Address = secret.Of("postgres://jobweaver:hunter2000@127.0.0.1:1/jobweaver_api")
	}, "cannot be used"},
	"a database that does not answer": {"database", func(t *testing.T, i *Installation) {
		i.Databases[0].Address = secret.Of("postgres://jobweaver:hunter2000@" + silent(t) + "/jobweaver_api")
	}, "cannot be used"},
	"a wrong password": {"database", func(t *testing.T, i *Installation) {
		cfg, err := pgx.ParseConfig(i.api())
		if err != nil {
			t.Fatal(err)
		}
		i.Databases[0].Address = secret.Of(strings.Replace(i.api(), cfg.Password, "hunter2000", 1))
	}, "password authentication failed"},
	"a database that is not there": {"database", func(_ *testing.T, i *Installation) {
		i.Databases[0].Address = secret.Of(i.api() + "&dbname=nothing")
	}, "does not exist"},
	"a database that accepts no writes": {"database", sql(onDatabase("ALTER DATABASE %I SET default_transaction_read_only = on")), "read only"},

	"clocks that differ": {"clocks", func(_ *testing.T, i *Installation) {
		i.Now = func() time.Time { return time.Now().Add(5 * time.Second) }
	}, "differ by"},
	"a clock that is behind": {"clocks", func(_ *testing.T, i *Installation) {
		i.Now = func() time.Time { return time.Now().Add(-5 * time.Second) }
	}, "differ by"},

	"an old PostgreSQL":           {"versions", limit(func(l *limits) { l.postgres = 99 }), "too old"},
	"a migration that is missing": {"versions", sql("DELETE FROM goose_db_version WHERE version_id > 1"), "it has migration 1, and"},
	"an index that is not valid":  {"versions", sql("UPDATE pg_index SET indisvalid = false WHERE indrelid = 'jobs'::regclass AND NOT indisprimary"), "is not valid"},
	"a function that is missing": {"versions", func(t *testing.T, i *Installation) {
		exec(t, i.api(), "ALTER FUNCTION update_waits RENAME TO another")
		i.Databases = []Database{{migrations.API, "notify", false, secret.Of(pgtest.As(i.api(), "notify"))}}
		i.Environments[0].Name = "notify"
	}, "it lacks update_waits()"},

	"commits that a crash loses": {"postgres", sql(onDatabase("ALTER DATABASE %I SET synchronous_commit = off")), "synchronous_commit is off"},
	"no connections left":        {"postgres", limit(func(l *limits) { l.crowded = 0 }), "connections are in use"},

	"a right too many":             {"rights", sql("GRANT DELETE ON jobs TO jobweaver_notify"), "jobweaver_notify needs no DELETE on jobs"},
	"a right too few":              {"rights", sql("REVOKE SELECT ON audit_log FROM jobweaver_gateway"), "jobweaver_gateway lacks SELECT on audit_log"},
	"a column too many":            {"rights", sql("GRANT UPDATE (owner_id) ON jobs TO jobweaver_gateway"), "needs no UPDATE (owner_id) on jobs"},
	"a database open to everyone":  {"rights", sql(onDatabase("GRANT CONNECT ON DATABASE %I TO PUBLIC")), "every user of the server has CONNECT"},
	"functions that own the table": {"rights", func(_ *testing.T, i *Installation) { i.Databases[0].Acts = false }, "owns the tables"},
	"a user of its own that lacks a right": {"rights", func(t *testing.T, i *Installation) {
		exec(t, i.api(), "REVOKE SELECT ON deliveries FROM jobweaver_notify")
		i.Databases = []Database{{migrations.API, "notify", false, secret.Of(pgtest.As(i.api(), "notify"))}}
	}, "jobweaver_notify lacks SELECT on deliveries"},

	"a secret that is short": {"secrets", env(func(e *Environment) { e.Webhook.Secrets = secret.AllOf("whsec_c2hvcnQtYnV0LXNlY3JldA==") }), "WEBHOOK_SECRETS: number 1"},
	"one secret for both":    {"secrets", env(func(e *Environment) { e.Callback.Secrets = e.Webhook.Secrets }), "has a secret of WEBHOOK_SECRETS"},
	"functions with different secrets": {"secrets", func(_ *testing.T, i *Installation) {
		other := i.Environments[0]
		i.Environments[0].Name, other.Name = "gateway", "runjob"
		other.Callback.Secrets = secret.AllOf(kept.SigningSecret().New())
		i.Environments = append(i.Environments, other)
	}, "CALLBACK_SECRETS is not that of gateway"},
	"a function without a secret": {"secrets", env(func(e *Environment) { e.Name, e.Webhook.Secrets = "runjob", nil }), "WEBHOOK_SECRETS is not set"},
	"another secret in the database": {"secrets", func(t *testing.T, i *Installation) {
		exec(t, i.Databases[2].Address.Reveal(), "INSERT INTO installation_secrets VALUES ('webhook', '"+kept.SigningSecret().New()+"')")
	}, "the database has another secret"},
	"a secret in the database that the user may not read": {"secrets", func(_ *testing.T, i *Installation) {
		i.Environments[0].Callback.Secrets = nil
		i.Databases[2].Address = secret.Of(pgtest.As(i.Databases[2].Address.Reveal(), "runjob"))
	}, "may not read the secret"},
	"a file that everyone can read": {"secrets", func(t *testing.T, i *Installation) {
		i.Environments[0].Files["WEBHOOK_SECRETS_FILE"] = file(t, "", 0o644)
	}, "every user of the machine can read"},
	"keys of events that are cut off": {"secrets", func(t *testing.T, i *Installation) {
		i.Environments[0].Host.EventKeysFile = file(t, "whsec_c2hvcnQ=", 0o600)
	}, "EVENT_KEYS_FILE"},
	"a keyset that is broken": {"secrets", func(t *testing.T, i *Installation) {
		i.Environments[0].Sealing.File = file(t, "{}", 0o600)
	}, "ENCRYPTION_KEYSET_FILE"},

	"brokers in plain text": {"tls", env(func(e *Environment) { e.Host.Kafka.Brokers = []string{"192.0.2.1:9092"} }), "in plain text"},
	"a database that is not verified": {"tls", func(_ *testing.T, i *Installation) {
		url := "postgres://jobweaver:hunter2000@192.0.2.1/jobweaver_api?sslmode=require"
		i.Databases = []Database{{migrations.API, Serve, true, secret.Of(url)}}
	}, "not verified"},
	"an API in plain text":  {"tls", env(func(e *Environment) { e.Host.Host = "" }), "plain HTTP"},
	"no keys":               {"tls", env(func(e *Environment) { e.Auth = "off" }), "AUTH is off"},
	"callbacks in the open": {"tls", env(func(e *Environment) { e.Callbacks.URL = "http://example.org/api/jobs/callback" }), "CALLBACK_URL is http"},

	"a certificate that ends soon": {"certificates", func(t *testing.T, i *Installation) {
		ca := certtest.NewFor(t, 13*24*time.Hour)
		i.Environments[0].Host.TLS.CertFile = certtest.NewDir(t, ca, ca.Issue(t, "127.0.0.1")).Cert()
	}, "ends in 12 days"},
	"a certificate that has ended": {"certificates", func(t *testing.T, i *Installation) {
		ca := certtest.NewFor(t, 90*24*time.Hour)
		i.Environments[0].Host.Kafka.TLSCAFile = certtest.NewDir(t, ca, ca.Issue(t, "127.0.0.1")).CA()
		i.Now = func() time.Time { return time.Now().Add(100 * 24 * time.Hour) }
	}, "has expired"},
	"a file without a certificate": {"certificates", func(t *testing.T, i *Installation) {
		i.Environments[0].Host.TLS.ClientCAFile = file(t, "nothing", 0o644)
	}, "no certificate"},
	"a proxy with another name": {"certificates", func(t *testing.T, i *Installation) {
		ca := certtest.NewFor(t, 90*24*time.Hour)
		i.Environments[0].Public.URL = "https://" + serving(t, ca.Issue(t, "jobs.example.org"))
	}, "not for that name"},
	"a proxy whose certificate ends soon": {"certificates", func(t *testing.T, i *Installation) {
		ca := certtest.NewFor(t, 3*24*time.Hour)
		i.Environments[0].Public.URL = "https://" + serving(t, ca.Issue(t, "127.0.0.1"))
	}, "ends in 2 days"},

	"a full disk": {"disk", limit(func(l *limits) {
		l.statfs = func(string) (free, size uint64, err error) { return 10, 100, nil }
	}), "10 % of the disk"},
	"a slot that keeps WAL": {"disk", func(t *testing.T, i *Installation) {
		name := query(t, i.api(), "SELECT 'slot_' || oid FROM pg_database WHERE datname = current_database()")
		exec(t, i.api(), "SELECT pg_create_physical_replication_slot('"+name+"', true)")
		t.Cleanup(func() { exec(t, i.api(), "SELECT pg_drop_replication_slot('"+name+"')") })
		i.limits.kept = -1
	}, "nothing reads it"},

	"a transaction that stays open": {"vacuum", func(t *testing.T, i *Installation) {
		conn, err := pgx.Connect(t.Context(), i.api())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close(t.Context()) })
		if _, err := conn.Exec(t.Context(), "BEGIN; SELECT 1"); err != nil {
			t.Fatal(err)
		}
		i.limits.open = time.Millisecond
	}, "is open for"},
	"dead rows that stay": {"vacuum", func(t *testing.T, i *Installation) {
		exec(t, i.api(), "ALTER TABLE job_counts SET (autovacuum_enabled = off)", "DELETE FROM job_counts",
			"SELECT pg_stat_force_next_flush()",
			"CREATE TABLE many (n int) WITH (autovacuum_enabled = off); INSERT INTO many SELECT generate_series(1, 9); DELETE FROM many",
			"SELECT pg_stat_force_next_flush()", "SELECT 1")
		i.limits.dead = 0
	}, "dead rows"},
	"transaction ids that are old": {"vacuum", limit(func(l *limits) { l.age = -1 }), "oldest transaction id"},
}

// A check finds nothing before its fault is there, and the fault afterwards.
func TestEachPlantedFaultIsFound(t *testing.T) {
	t.Parallel()
	for name, f := range faults {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			i := withoutDatabases()
			if !slices.Contains([]string{"settings", "tls", "certificates"}, f.check) {
				i = installation(t)
			}
			before := of(t, i, f.check)
			for _, finding := range before.Findings {
				if f.check != "postgres" || !strings.Contains(finding.What, "a crash") { // the test's server has fsync=off
					t.Errorf("before: %+v", finding)
				}
			}
			f.plant(t, i)
			after := of(t, i, f.check)
			if !found(after, f.want) {
				t.Errorf("found %+v, want %s; not seen: %v", after.Findings, f.want, after.Unseen)
			}
		})
	}
}

func found(r Result, want string) bool {
	for _, finding := range r.Findings {
		if strings.Contains(finding.What, want) && finding.Do != "" && finding.Where != "" {
			return true
		}
	}
	return false
}

// elsewhere are the checks whose faults other tests plant.
var elsewhere = map[string]string{
	"pooler": "TestFaultsOfAPoolerAreFound", "topics": "TestFaultsOfTopicsAreFound", "backup": "TestFaultsOfAServerAreFound",
}

func TestEachCheckHasAPlantedFault(t *testing.T) {
	t.Parallel()
	for _, check := range Checks {
		_, has := elsewhere[check.Name]
		for _, f := range faults {
			has = has || f.check == check.Name
		}
		if !has {
			t.Errorf("no fault shows that %s can find one", check.Name)
		}
	}
}

// silent returns the address of a server that accepts connections and never answers.
func silent(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener.Addr().String()
}

// serving returns the address of a server with a certificate.
func serving(t *testing.T, pair certtest.Pair) string {
	t.Helper()
	both, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(nil)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{both}} //nolint:gosec // a test's
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// The page has a line for each check, in their order, and no line for another one.
func TestTheChecklistHasEachCheck(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| doctor | is as it should be if |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	var named, all []string
	for line := range strings.Lines(table) {
		named = append(named, strings.Split(line, "`")[1])
	}
	for _, check := range Checks {
		all = append(all, check.Name)
	}
	if !slices.Equal(named, all) {
		t.Errorf("docs/operations.md has %q, doctor checks %q", named, all)
	}
}
