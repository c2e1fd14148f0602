package pgpool_test

import (
	"context"
	"crypto/rand"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

// tenant is a role of the server whose password changes.
type tenant struct {
	admin   *pgxpool.Pool
	role    string
	at      string // its address without a password
	file    string // its password
	address string // a file with at
}

func newTenant(t *testing.T) *tenant {
	t.Helper()
	database := pgtest.Empty(t)
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	n := &tenant{
		admin: pgtest.Pool(t, database), role: strings.ToLower("tenant_" + rand.Text()),
		file: filepath.Join(dir, "pass word"), address: filepath.Join(dir, "address"),
	}
	u.User = url.User(n.role)
	n.at = u.String()
	exec(t, n.admin, "CREATE ROLE "+n.role+" LOGIN")
	t.Cleanup(func() { _, _ = n.admin.Exec(context.Background(), "DROP ROLE "+n.role) })
	n.write(t, n.address, n.at)
	n.change(t)
	return n
}

func (n *tenant) write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// change gives the role another password.
func (n *tenant) change(t *testing.T) {
	t.Helper()
	password := rand.Text() + "@/% '"
	exec(t, n.admin, "ALTER ROLE "+n.role+" PASSWORD '"+strings.ReplaceAll(password, "'", "''")+"'")
	n.write(t, n.file, password)
}

func (n *tenant) with(t *testing.T, address, parameter, value string) string {
	t.Helper()
	address, err := pgpool.With(address, parameter, value)
	if err != nil {
		t.Fatal(err)
	}
	return address
}

func TestAPasswordThatChangesServesNewConnections(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]func(*testing.T, *tenant) string{
		"in a file":    func(t *testing.T, n *tenant) string { return n.with(t, n.at, "passwordfile", n.file) },
		"of a command": func(t *testing.T, n *tenant) string { return n.with(t, n.at, "passwordcommand", "cat '"+n.file+"'") },
		"of the address's user": func(t *testing.T, n *tenant) string {
			return n.with(t, n.at, "passwordcommand", `test "$PGUSER" = `+n.role+` -a -n "$PGHOST$PGPORT$PGDATABASE" && cat '`+n.file+"'")
		},
		"for an address in a file": func(t *testing.T, n *tenant) string {
			return n.with(t, pgpool.InFile(n.address), "passwordfile", n.file)
		},
		"for a keyword address": func(t *testing.T, n *tenant) string {
			cfg, err := pgpool.ReadAddress(n.at)
			if err != nil {
				t.Fatal(err)
			}
			u, _ := url.Parse(n.at)
			return n.with(t, "host="+cfg.Host+" port="+u.Port()+" user="+n.role+" sslmode=disable dbname="+cfg.Database,
				"passwordfile", n.file)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newTenant(t)
			n.serves(t, of(t, n))
		})
	}
}

func (n *tenant) serves(t *testing.T, address string) {
	pool := open(t, address)
	held, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer held.Release()
	n.change(t)
	pool.Reset() // the next statement needs a new connection
	if err := pool.Ping(t.Context()); err != nil {
		t.Fatalf("the pool, after a change: %v", err)
	}
	if err := held.Ping(t.Context()); err != nil {
		t.Errorf("who was connected before: %v", err)
	}
	conn, err := pgpool.Connect(t.Context(), address)
	if err != nil {
		t.Fatalf("a single connection: %v", err)
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAPasswordThatCannotBeReadLeavesTheOldOne(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	pool := open(t, n.with(t, n.at, "passwordfile", n.file))
	n.write(t, n.file, "")
	pool.Reset()
	if err := pool.Ping(t.Context()); err != nil {
		t.Errorf("with the password that is still valid: %v", err)
	}
}

func TestAFirstPasswordIsAwaited(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	tries := 0
	source := n.with(t, n.at, "passwordcommand", "echo no token yet >&2; exit 1")
	pool, err := pgpool.Lazy(t.Context(), source)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	err = pgpool.Await(t.Context(), func(ctx context.Context) error {
		if tries++; tries > 1 {
			return nil
		}
		err := pool.Ping(ctx)
		if err == nil || !strings.Contains(err.Error(), "DATABASE_PASSWORD_COMMAND: the command failed: exit status 1: no token yet") ||
			!pgpool.IsUnavailable(err) {
			t.Errorf("without a password: %v", err)
		}
		return err
	})
	if err != nil || tries != 2 {
		t.Errorf("%d tries, %v", tries, err)
	}
	if _, err := pgpool.Connect(t.Context(), source); !pgpool.MayPass(err) {
		t.Errorf("a single connection: %v", err)
	}
}

func TestThePasswordOfTheSettingsIsThatOfTheAddress(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	address, err := pgpool.Settings{PasswordFile: n.file}.Complete(n.at)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pgpool.ReadAddress(address); err != nil || !pgpool.Secure(address) {
		t.Errorf("it is not read without a password: %v", err)
	}
	conn, err := pgpool.Connect(t.Context(), address, func(cfg *pgx.ConnConfig) { cfg.RuntimeParams["application_name"] = "x" })
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close(t.Context())
	if _, err := (pgpool.Settings{PasswordFile: n.file, PasswordCommand: "x"}).Complete(n.at); err == nil {
		t.Error("two sources are one too many")
	}
	if address, err := (pgpool.Settings{PasswordFile: n.file}).Complete(""); err != nil || address != "" {
		t.Errorf("no address became %q, %v", address, err)
	}
}
