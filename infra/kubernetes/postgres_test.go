package kubernetes_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/jobweaver/jobweaver/infra/laptop/localpostgres"
	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/certtest"
	"github.com/jobweaver/jobweaver/shared/pgpool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// object holds the fields of CloudNativePG's objects that the tests use.
type object struct {
	Kind     string
	Metadata struct{ Name string }
	Spec     struct {
		Name, Owner       string
		Login             bool
		ClientCertificate struct{ Enabled bool } `yaml:"clientCertificate"`
		Bootstrap         struct {
			Initdb struct{ Database, Owner string }
		}
		PostgreSQL struct {
			HBA []string `yaml:"pg_hba"`
		} `yaml:"postgresql"`
	}
}

func objects(t *testing.T, folder, kind string) (found []object) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		file, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		documents := yaml.NewDecoder(file)
		for {
			var next object
			err := documents.Decode(&next)
			if errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if next.Kind == kind {
				found = append(found, next)
			}
		}
		_ = file.Close()
	}
	return found
}

// addresses are the values of DATABASE_URL in production, by the suffix of the Secret's name.
func addresses(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../../knative/components/cloudnativepg/kustomization.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var component struct {
		SecretGenerator []struct {
			Name     string
			Literals []string
		} `yaml:"secretGenerator"`
	}
	if err := yaml.Unmarshal(text, &component); err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, secret := range component.SecretGenerator {
		for _, literal := range secret.Literals {
			if address, ok := strings.CutPrefix(literal, "url="); ok {
				found[strings.TrimPrefix(secret.Name, "jobweaver-database-")] = address
			}
		}
	}
	return found
}

// The test does by hand, on a real PostgreSQL, what the operator does with the manifests: the roles, the databases,
// the certificates and pg_hba.conf. Then `jobweaver migrate --roles` runs and each function connects as in
// production.
func TestEachFunctionComesIntoItsDatabaseByTheCertificateOfItsRole(t *testing.T) {
	if testing.Short() {
		t.Skip("nothing here runs concurrently") // -short is for the race detector
	}
	t.Parallel()
	cluster := newCluster(t)
	server := cluster.address(t, "migrate", "")
	urls, err := migrations.EnsureDatabases(t.Context(), server)
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range []migrations.Set{migrations.API, migrations.Scheduler, migrations.Worker} {
		if err := migrations.Up(t.Context(), urls.Of(set.Functions[0]), set, nil); err != nil {
			t.Fatal(err)
		}
		if err := migrations.Grant(t.Context(), urls.Of(set.Functions[0]), set, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, set := range []migrations.Set{migrations.API, migrations.Scheduler, migrations.Worker} {
		for _, function := range set.Functions {
			t.Run(function, func(t *testing.T) {
				who := ask(t, cluster.address(t, function, ""))
				if want := migrations.Role(function) + " in " + set.Database(); who != want {
					t.Errorf("came in as %s, want %s", who, want)
				}
				cluster.mustRefuse(t, function)
			})
		}
	}
}

// mustRefuse tries what the function must not be able to do.
func (c *cluster) mustRefuse(t *testing.T, function string) {
	t.Helper()
	other, database := "gateway", migrations.API.Database()
	if slices.Contains(migrations.API.Functions, function) {
		other, database = "ingest", migrations.Scheduler.Database()
	}
	plain := strings.ReplaceAll(c.address(t, function, ""), "verify-full", "disable")
	elsewhere, err := migrations.WithDatabase(c.address(t, function, ""), database)
	if err != nil {
		t.Fatal(err)
	}
	for what, address := range map[string]string{
		"without TLS": plain, "with the certificate of another": c.address(t, function, other),
		"in another database": elsewhere,
	} {
		if conn, err := pgpool.Connect(t.Context(), address); err == nil {
			_ = conn.Close(t.Context())
			t.Errorf("%s was let in %s", function, what)
		}
	}
}

type cluster struct {
	*localpostgres.Server
	dir       string
	addresses map[string]string
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	ca, dir := certtest.New(t), tempDir(t)
	c := &cluster{dir: dir, addresses: addresses(t)}
	pair := ca.Issue(t, "127.0.0.1")
	c.write(t, "ca.crt", ca.PEM)
	c.write(t, "server.crt", pair.Cert)
	c.write(t, "server.key", pair.Key)
	var err error
	c.Server, err = localpostgres.Start(t.Context(), localpostgres.Config{Dir: dir, NoSync: true, Settings: map[string]string{
		"ssl": "on", "ssl_cert_file": c.file("server.crt"), "ssl_key_file": c.file("server.key"),
		"ssl_ca_file": c.file("ca.crt"), "shared_buffers": "16MB",
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Stop() })
	c.asTheOperator(t, ca)
	return c
}

// asTheOperator does what CloudNativePG does with the manifests.
func (c *cluster) asTheOperator(t *testing.T, ca *certtest.CA) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), c.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	run := func(sql string) {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	for _, role := range objects(t, "postgres", "DatabaseRole") {
		run(fmt.Sprintf("CREATE ROLE %s %s", role.Spec.Name, map[bool]string{true: "LOGIN"}[role.Spec.Login]))
		if role.Spec.ClientCertificate.Enabled {
			pair := ca.Issue(t, role.Spec.Name) // its subject is the role
			c.write(t, role.Metadata.Name+".crt", pair.Cert)
			c.write(t, role.Metadata.Name+".key", pair.Key)
		}
	}
	spec := objects(t, "postgres", "Cluster")[0].Spec
	run("CREATE DATABASE " + spec.Bootstrap.Initdb.Database + " OWNER " + spec.Bootstrap.Initdb.Owner)
	for _, database := range objects(t, "postgres", "Database") {
		run("CREATE DATABASE " + database.Spec.Name + " OWNER " + database.Spec.Owner)
	}
	rules := slices.Concat(spec.PostgreSQL.HBA, []string{"host all all all scram-sha-256"})
	c.write(t, "data/pg_hba.conf", []byte(strings.Join(rules, "\n")+"\n"))
	run("SELECT pg_reload_conf()")
	c.awaitRules(t, conn, len(rules))
}

// awaitRules waits until the server uses the file, and fails if the server cannot read a line of it.
func (c *cluster) awaitRules(t *testing.T, conn *pgx.Conn, lines int) {
	t.Helper()
	var wrong, read int
	err := conn.QueryRow(t.Context(), "SELECT count(error), count(*) FROM pg_hba_file_rules").Scan(&wrong, &read)
	if err != nil || wrong > 0 || read != lines {
		t.Fatalf("pg_hba: %d of %d lines are wrong (%v)", wrong, read, err)
	}
	// The file is valid. A connection that only the file allows shows when the server uses it.
	for {
		next, err := pgpool.Connect(t.Context(), c.address(t, "migrate", ""))
		if err == nil {
			_ = next.Close(t.Context())
			return
		}
		select {
		case <-t.Context().Done():
			t.Fatal(err)
		default:
		}
	}
}

// address returns the function's URL on this server, with the paths of the files as mounted; with another function's
// certificate if one is named.
func (c *cluster) address(t *testing.T, function, certificate string) string {
	t.Helper()
	given, ok := c.addresses[function]
	if !ok {
		t.Fatalf("%s is given no address", function)
	}
	if certificate == "" {
		certificate = function
	}
	at, err := url.Parse(c.URL())
	if err != nil {
		t.Fatal(err)
	}
	mounted := c.file("jobweaver-database-" + certificate + "-")
	return strings.NewReplacer(
		"postgres-rw.jobweaver.svc:5432", at.Host, "/etc/jobweaver/database-ca/ca.crt", c.file("ca.crt"),
		"/etc/jobweaver/certificate/tls.", strings.TrimSuffix(mounted, "-")+".",
	).Replace(given)
}

func (c *cluster) file(name string) string { return filepath.Join(c.dir, name) }

func (c *cluster) write(t *testing.T, name string, text []byte) {
	t.Helper()
	if err := os.WriteFile(c.file(name), text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func ask(t *testing.T, address string) (who string) {
	t.Helper()
	conn, err := pgpool.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	if err := conn.QueryRow(t.Context(), "SELECT session_user || ' in ' || current_database()").Scan(&who); err != nil {
		t.Fatal(err)
	}
	return who
}

func tempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "kubernetes-") // accessible to PostgreSQL's own user
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
