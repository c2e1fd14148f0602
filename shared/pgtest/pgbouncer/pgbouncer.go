// Package pgbouncer runs PgBouncer for tests.
package pgbouncer

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jobweaver/jobweaver/infra/laptop/freeport"
	"github.com/jobweaver/jobweaver/shared/testwait"
)

// Start starts a PgBouncer in front of a server until the test ends, and returns the address of the server by it.
func Start(t testing.TB, server, mode string) string {
	t.Helper()
	binary := "/usr/sbin/pgbouncer"
	if _, err := os.Stat(binary); err != nil {
		if os.Getenv("CI") == "" {
			t.Skip("there is no pgbouncer (apt-get install pgbouncer)")
		}
		t.Fatal(err)
	}
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "pgbouncer-") // which another user may enter
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	password, _ := u.User.Password()
	users, port := filepath.Join(dir, "users"), freeport.For(t)
	write(t, users, fmt.Sprintf("%q %q\n", u.User.Username(), password))
	write(t, filepath.Join(dir, "ini"), strings.Join([]string{
		"[databases]", "* = host=" + u.Hostname() + " port=" + u.Port(), "[pgbouncer]", "listen_addr = 127.0.0.1",
		"listen_port = " + port, "unix_socket_dir =", "auth_type = scram-sha-256", "auth_file = " + users,
		"pool_mode = " + mode, "default_pool_size = 20", "max_client_conn = 500",
	}, "\n"))
	cmd := exec.Command(binary, filepath.Join(dir, "ini"))
	if os.Getuid() == 0 { // it does not run as root
		const unprivileged = 65534
		for _, path := range []string{dir, users, filepath.Join(dir, "ini")} {
			if err := os.Chown(path, unprivileged, unprivileged); err != nil {
				t.Fatal(err)
			}
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: unprivileged, Gid: unprivileged}}
	}
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(out.String())
		}
	})
	u.Host = "127.0.0.1:" + port
	testwait.Until(t, "PgBouncer accepts connections", func() bool {
		conn, err := net.Dial("tcp", u.Host)
		return err == nil && conn.Close() == nil
	})
	return u.String()
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
