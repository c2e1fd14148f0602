package pgpool_test

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/infra/laptop/localpostgres"
	"github.com/jobweaver/jobweaver/shared/certtest"
	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/tlsfiles"
)

func TestConnectionsOverTLS(t *testing.T) {
	t.Parallel()
	ca := certtest.New(t)
	s := startSecure(t, ca)
	t.Run("know the server, and are known", func(t *testing.T) { s.knowEachOther(t, ca) })
	t.Run("use renewed certificates from the next one on", func(t *testing.T) { s.renew(t, ca, certtest.New(t)) })
}

func (s *secureServer) knowEachOther(t *testing.T, ca *certtest.CA) {
	other := certtest.New(t)
	ours := certtest.NewDir(t, ca, ca.Issue(t, "jobweaver"))
	pool := open(t, s.address("127.0.0.1", "verify-full", ours))
	var dn string
	if err := pool.QueryRow(t.Context(), "SELECT client_dn FROM pg_stat_ssl WHERE pid = pg_backend_pid() AND ssl").
		Scan(&dn); err != nil || dn != "/CN=jobweaver" {
		t.Errorf("seen as %q, %v", dn, err)
	}
	if left := time.Until(tlsfiles.Expiries()["sslcert"]); left <= 0 || left > time.Hour {
		t.Errorf("the certificate of an hour expires in %s", left)
	}
	wrong := certtest.NewDir(t, other, ca.Issue(t, "jobweaver"))
	foreign := certtest.NewDir(t, ca, other.Issue(t, "jobweaver"))
	for _, tt := range []struct{ name, url, want string }{
		{"plain text", s.address("127.0.0.1", "disable", ours), "no encryption"},
		{"another CA", s.address("127.0.0.1", "verify-full", wrong), "unknown authority"},
		{"another name", s.address("localhost", "verify-full", ours), "localhost"},
		{"a certificate of another CA", s.address("127.0.0.1", "verify-full", foreign), "valid client certificate"},
		{"a CA that the system does not know", s.address("127.0.0.1", "verify-full", ""), "unknown authority"},
	} {
		began := time.Now()
		pool, err := pgpool.Open(t.Context(), tt.url)
		if err == nil {
			pool.Close()
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), s.password()) {
			t.Errorf("%s: opened with %v", tt.name, err)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("%s: failed after %s", tt.name, took)
		}
	}
}

func (s *secureServer) renew(t *testing.T, before, after *certtest.CA) {
	ours := certtest.NewDir(t, before, before.Issue(t, "before"))
	pool := open(t, s.address("127.0.0.1", "verify-full", ours))
	held, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer held.Release()

	s.certify(t, after)
	if _, err := held.Exec(t.Context(), "SELECT pg_reload_conf()"); err != nil {
		t.Fatal(err)
	}
	ours.Put(t, nil, certtest.Pair{Cert: []byte("half a file")})
	if err := awaitError(t, pool.Ping, "unknown authority"); err != nil {
		t.Errorf("with a broken certificate: %v", err)
	}
	ours.Put(t, after, after.Issue(t, "after"))
	if err := awaitError(t, pool.Ping, ""); err != nil {
		t.Errorf("with the new ones: %v", err)
	}
	listen, end := context.WithCancel(t.Context())
	if err := pgpool.Listen(listen, pool, "anything", end); listen.Err() == nil {
		t.Errorf("a listener: %v", err)
	}
	if err := held.Ping(t.Context()); err != nil {
		t.Errorf("who was connected before: %v", err)
	}
}

// awaitError pings until the error has the text: PostgreSQL applies its new settings a moment after the request.
func awaitError(t *testing.T, ping func(context.Context) error, text string) error {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; {
		err := ping(t.Context())
		if text == "" && err == nil || text != "" && err != nil && strings.Contains(err.Error(), text) {
			return nil
		}
		if time.Now().After(deadline) {
			return err
		}
		<-time.After(20 * time.Millisecond)
	}
}

// secureServer refuses connections in plain text and connections without a client certificate.
type secureServer struct {
	*localpostgres.Server
	dir string
}

func startSecure(t *testing.T, ca *certtest.CA) *secureServer {
	t.Helper()
	dir, err := os.MkdirTemp("", "pgpool-tls-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &secureServer{dir: dir}
	s.certify(t, ca)
	s.Server, err = localpostgres.Start(t.Context(), localpostgres.Config{Dir: dir, NoSync: true, Settings: map[string]string{
		"ssl": "on", "ssl_cert_file": s.file("cert"), "ssl_key_file": s.file("key"), "ssl_ca_file": s.file("ca"),
		"shared_buffers": "16MB",
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop() })
	conn, err := pgx.Connect(t.Context(), s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	rule := []byte("hostssl all all 127.0.0.1/32 scram-sha-256 clientcert=verify-ca\n")
	if err := os.WriteFile(filepath.Join(dir, "data", "pg_hba.conf"), rule, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), "SELECT pg_reload_conf()"); err != nil {
		t.Fatal(err)
	}
	return s
}

// certify writes into the files, whose owner PostgreSQL looks at.
func (s *secureServer) certify(t *testing.T, ca *certtest.CA) {
	t.Helper()
	pair := ca.Issue(t, "127.0.0.1")
	for name, text := range map[string][]byte{"ca": ca.PEM, "cert": pair.Cert, "key": pair.Key} {
		if err := os.WriteFile(s.file(name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func (s *secureServer) file(name string) string { return filepath.Join(s.dir, name+".pem") }

func (s *secureServer) password() string {
	address, _ := url.Parse(s.URL())
	password, _ := address.User.Password()
	return password
}

func (s *secureServer) address(host, mode string, files certtest.Dir) string {
	address, _ := url.Parse(s.URL())
	address.Host = host + ":" + address.Port()
	settings := url.Values{"sslmode": {mode}}
	if files != "" {
		settings.Set("sslrootcert", files.CA())
		settings.Set("sslcert", files.Cert())
		settings.Set("sslkey", files.Key())
	}
	address.RawQuery = settings.Encode()
	return address.String()
}
