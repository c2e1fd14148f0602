package doctor

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/local/kept"
	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/kafkatest"
	"github.com/jobweaver/jobweaver/shared/pgtest"
	"github.com/jobweaver/jobweaver/shared/secret"
)

func TestMain(m *testing.M) { pgtest.Main(m, kafkatest.IgnoreSarama()) }

// installation is one of serve, in databases of the test's own, in which every check but that of fsync finds nothing.
func installation(t *testing.T) *Installation {
	t.Helper()
	i := withoutDatabases()
	serviceRoles(t)
	for _, set := range (migrations.Layout{}).Sets() {
		url := pgtest.Database(t, set)
		exec(t, url, onDatabase("REVOKE ALL ON DATABASE %I FROM PUBLIC"))
		i.Databases = append(i.Databases, Database{set, Serve, true, secret.Of(url)})
	}
	return i
}

func withoutDatabases() *Installation {
	i := &Installation{Now: time.Now, limits: usual, Environments: []Environment{{
		Name: Serve, Auth: "on", Files: map[string]string{},
		Host: funchost.Config{Host: "127.0.0.1", Queues: []string{jobevent.DefaultQueue, "pull"}},
	}}}
	e := &i.Environments[0]
	e.Webhook.Secrets = secret.AllOf(kept.SigningSecret().New())
	e.Callback.Secrets = secret.AllOf(kept.SigningSecret().New())
	i.limits.statfs = func(string) (free, size uint64, err error) { return 1 << 40, 1 << 41, nil }
	return i
}

var roles struct {
	sync.Mutex
	made bool
}

// serviceRoles makes the roles that serve makes on its server: they belong to a server, not to a database.
func serviceRoles(t *testing.T) {
	t.Helper()
	roles.Lock()
	defer roles.Unlock()
	for _, set := range (migrations.Layout{}).Sets() {
		if roles.made {
			continue
		}
		if err := migrations.GrantService(t.Context(), pgtest.Database(t, set), set, nil); err != nil {
			t.Fatal(err)
		}
	}
	roles.made = true
}

// of returns what a check finds, which may show no secret.
func of(t *testing.T, i *Installation, check string) Result {
	t.Helper()
	began := time.Now()
	others := map[string]bool{}
	for _, c := range Checks {
		others[c.Name] = c.Name != check
	}
	results := Run(t.Context(), i, others)
	if took := time.Since(began); took > Patience+5*time.Second {
		t.Errorf("it took %s", took)
	}
	printed, err := json.Marshal(results)
	if err != nil {
		t.Fatal(err)
	}
	for _, hidden := range i.secrets() {
		if strings.Contains(string(printed), hidden) {
			t.Errorf("%q is printed: %s", hidden, printed)
		}
	}
	if len(results) != 1 {
		t.Fatalf("%s has %d results", check, len(results))
	}
	return results[0]
}

// onDatabase makes a statement that names the database of the session by %I. A copy of a database lacks the rights to it.
func onDatabase(statement string) string {
	return "DO $$ BEGIN EXECUTE format('" + statement + "', current_database()); END $$"
}

// exec also works in a cleanup, when the context of the test has ended.
func exec(t *testing.T, url string, statements ...string) {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	for _, sql := range statements {
		if _, err := conn.Exec(context.Background(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

func query(t *testing.T, url, sql string) (text string) {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if err := conn.QueryRow(context.Background(), "SELECT ("+sql+")::text").Scan(&text); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return text
}

func file(t *testing.T, text string, mode os.FileMode) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return path
}
