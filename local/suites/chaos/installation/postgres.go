package installation

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/infra/laptop/freeport"
	"github.com/jobweaver/jobweaver/local/suites/chaos/clock"
	"github.com/jobweaver/jobweaver/local/suites/chaos/proxy"
)

// servers are a PostgreSQL primary and its synchronous standby.
type servers struct {
	system   *Installation
	bin      string // folder of postgres, initdb and pg_basebackup
	as       *syscall.Credential
	password string
	Nodes    [2]*node
	Primary  *node
	named    atomic.Pointer[node] // the node to which the moving address leads
	Control  *clock.Control
	shim     string
}

// node is one server. It keeps its port when its role changes.
type node struct {
	*process
	port int
	Disk string // contains its data folder
	feed int    // port of the proxy by which a standby reads from it
}

func (n *node) data() string { return filepath.Join(n.Disk, "data") }

// installed finds the newest server that Debian has installed.
func installed() (bin string, err error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/pg_basebackup")
	version := func(path string) int {
		n, _ := strconv.Atoi(strings.Split(path, "/")[4])
		return n
	}
	if len(found) == 0 {
		return "", errors.New("there is no pg_basebackup in /usr/lib/postgresql/*/bin: install Debian's package postgresql")
	}
	return filepath.Dir(slices.MaxFunc(found, func(a, b string) int { return version(a) - version(b) })), nil
}

// newServers starts both servers.
func (h *Installation) newServers(ctx context.Context) error {
	bin, err := installed()
	if err != nil {
		return err
	}
	s := &servers{system: h, bin: bin, password: rand.Text()}
	h.Postgres = s
	if s.as, err = other(); err != nil {
		return err
	}
	if s.shim, err = clock.Shim(h.Dir); err != nil {
		return err
	}
	if s.Control, err = clock.NewControl(h.Path("postgres.clock")); err != nil {
		return err
	}
	for i, name := range []string{"pg-a", "pg-b"} {
		if s.Nodes[i], err = s.newNode(name); err != nil {
			return err
		}
	}
	s.Primary = s.Nodes[0]
	s.named.Store(s.Primary)
	if err := s.initialize(ctx); err != nil {
		return err
	}
	return s.AddStandby(ctx)
}

func (s *servers) newNode(name string) (*node, error) {
	h := s.system
	disk, err := h.disk(name, true, 2<<30)
	if err != nil {
		return nil, err
	}
	two, err := ports(2)
	if err != nil {
		return nil, err
	}
	n := &node{port: two[0], feed: two[1], Disk: disk}
	n.process = h.process(name, func() *exec.Cmd { return s.run("postgres", s.settings(n)...) })
	n.onDeath = syscall.SIGQUIT // down at once, with its children
	return n, errors.Join(s.own(disk), h.Net.listenAt(n.feed, n.port, proxy.Always(h.Net.link("standby", name))))
}

// other returns the user for PostgreSQL if this process is root, as which PostgreSQL refuses to run.
func other() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		if u, err := user.Lookup(name); err == nil {
			uid, uidErr := strconv.Atoi(u.Uid)
			gid, gidErr := strconv.Atoi(u.Gid)
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, errors.Join(uidErr, gidErr)
		}
	}
	return nil, errors.New("PostgreSQL needs a user 'postgres' or 'nobody'")
}

func (s *servers) own(path string) error {
	if s.as == nil {
		return nil
	}
	return os.Chown(path, int(s.as.Uid), int(s.as.Gid))
}

func (s *servers) run(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.bin, program), args...)
	cmd.Dir = "/"
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC", "PGPASSWORD=" + s.password,
		"LD_PRELOAD=" + s.shim, clock.Env + "=" + s.Control.Path(),
	}
	if s.as != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.as}
	}
	return cmd
}

func (s *servers) settings(n *node) []string {
	args := []string{"-D", n.data()}
	for _, setting := range []string{
		"port=" + strconv.Itoa(n.port), "listen_addresses=127.0.0.1", "unix_socket_directories=", "TimeZone=UTC",
		"log_timezone=UTC", "max_connections=300", "shared_buffers=128MB", "max_wal_size=256MB", "wal_keep_size=128MB",
		"hot_standby=on", "wal_sender_timeout=10s", "wal_receiver_timeout=10s", "log_checkpoints=off",
	} {
		args = append(args, "-c", setting)
	}
	return args
}

// syncFile is included by the configuration of either server, and takes effect on the primary.
func (s *servers) syncFile() string { return s.system.Path("sync.conf") }

// initialize makes the first server's data, and starts it.
func (s *servers) initialize(ctx context.Context) error {
	secret := s.system.Path("postgres.password")
	err := errors.Join(os.WriteFile(secret, []byte(s.password), 0o600), s.own(secret), s.synchronous(false))
	if err != nil {
		return err
	}
	out, err := s.run("initdb", "-D", s.Primary.data(), "-U", "postgres", "--pwfile", secret, "--auth=scram-sha-256",
		"--encoding=UTF8", "--no-locale", "--no-instructions").CombinedOutput()
	if err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	conf, err := os.OpenFile(filepath.Join(s.Primary.data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("configure PostgreSQL: %w", err)
	}
	_, err = fmt.Fprintf(conf, "\ninclude_if_exists '%s'\n", s.syncFile())
	if err := errors.Join(err, conf.Close()); err != nil {
		return fmt.Errorf("configure PostgreSQL: %w", err)
	}
	if err := s.Primary.Start(); err != nil {
		return err
	}
	return s.AwaitPrimary(ctx)
}

// synchronous decides whether the primary's commits wait for a standby.
func (s *servers) synchronous(on bool) error {
	names := ""
	if on {
		names = "*"
	}
	text := fmt.Sprintf("synchronous_standby_names = '%s'\n", names)
	if err := errors.Join(os.WriteFile(s.syncFile(), []byte(text), 0o644), os.Chmod(s.syncFile(), 0o644)); err != nil {
		return err
	}
	s.Primary.mu.Lock()
	defer s.Primary.mu.Unlock()
	if s.Primary.running() {
		_ = s.Primary.cmd.Process.Signal(syscall.SIGHUP)
	}
	return nil
}

func (s *servers) standby() *node {
	if s.Primary == s.Nodes[0] {
		return s.Nodes[1]
	}
	return s.Nodes[0]
}

// AddStandby makes a standby from the primary's data, and makes commits wait for it.
func (s *servers) AddStandby(ctx context.Context) error {
	from, n := s.Primary, s.standby()
	if err := n.Kill(); err != nil {
		return err
	}
	if err := os.RemoveAll(n.data()); err != nil {
		return fmt.Errorf("clear the standby's folder: %w", err)
	}
	out, err := s.run("pg_basebackup", "-h", "127.0.0.1", "-p", strconv.Itoa(from.feed), "-U", "postgres", "-D", n.data(),
		"-R", "-X", "stream", "-c", "fast").CombinedOutput()
	if err != nil {
		return fmt.Errorf("pg_basebackup: %w\n%s", err, out)
	}
	if err := n.Start(); err != nil {
		return err
	}
	if err := s.synchronous(true); err != nil {
		return err
	}
	return s.AwaitStandby(ctx)
}

// AwaitStandby waits until the standby streams.
func (s *servers) AwaitStandby(ctx context.Context) error {
	return Within(ctx, time.Minute, func(ctx context.Context) error {
		streaming, err := s.ask(ctx, "select sync_state from pg_stat_replication where state = 'streaming'")
		if err == nil && !slices.Contains(streaming, "sync") {
			err = fmt.Errorf("the standby does not stream: %v", streaming)
		}
		return err
	})
}

// AwaitPrimary waits until the primary answers.
func (s *servers) AwaitPrimary(ctx context.Context) error {
	return Within(ctx, time.Minute, func(ctx context.Context) error {
		recovers, err := s.ask(ctx, "select pg_is_in_recovery()::text")
		if err == nil && recovers[0] == "true" {
			err = errors.New("it is no primary yet")
		}
		return err
	})
}

// Promote makes the standby the primary, after the primary was lost.
func (s *servers) Promote(ctx context.Context) error {
	s.Primary = s.standby()
	if err := s.synchronous(false); err != nil {
		return err
	}
	err := Within(ctx, time.Minute, func(ctx context.Context) error {
		_, err := s.ask(ctx, "select case when pg_is_in_recovery() then pg_promote(true, 30)::text end")
		return errors.Join(err, s.AwaitPrimary(ctx))
	})
	s.named.Store(s.Primary)
	return err
}

// StopWrites makes the primary read only, for the sessions that it has, too.
func (s *servers) StopWrites(ctx context.Context) error {
	_, err := s.ask(ctx, "alter system set default_transaction_read_only = on")
	if err == nil {
		_, err = s.ask(ctx, "select pg_reload_conf()::text")
	}
	return err
}

// URL returns the address of a database on the primary, bypassing the proxies.
func (s *servers) URL(database string) string {
	return fmt.Sprintf("postgres://postgres:%s@%s/%s?sslmode=disable", s.password, loopback(s.Primary.port), database)
}

// urlOf returns a function's address of its database, through proxies of this process. One process of each function has
// a single address, which follows the primary as a name in DNS or a virtual address does; the other has both servers.
func (s *servers) urlOf(process, role, password, database string) (string, error) {
	var hosts []string
	if strings.HasSuffix(process, "-1") {
		own, err := freeport.Pick()
		if err != nil {
			return "", err
		}
		port := func() int { return s.named.Load().port }
		err = s.system.Net.listenFor(own, port, func(io.Reader) (*proxy.Link, []byte, error) {
			return s.system.Net.link(process, s.named.Load().Name), nil, nil
		})
		return s.urlAt(role, password, loopback(own), database), err
	}
	for _, n := range s.Nodes {
		port, err := s.system.Net.listen(n.port, proxy.Always(s.system.Net.link(process, n.Name)))
		if err != nil {
			return "", err
		}
		hosts = append(hosts, loopback(port))
	}
	return s.urlAt(role, password, strings.Join(hosts, ","), database), nil
}

func (s *servers) urlAt(role, password, hosts, database string) string {
	return fmt.Sprintf("postgres://%s:%s@%s/%s?sslmode=disable", role, url.QueryEscape(password), hosts, database)
}

// ask reads one column from the primary.
func (s *servers) ask(ctx context.Context, sql string) ([]string, error) {
	return Texts(ctx, s.URL("postgres"), sql)
}

// Texts reads one column of texts.
func Texts(ctx context.Context, url, sql string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, 40*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(ctx) }()
	rows, err := conn.Query(ctx, sql)
	if err != nil {
		return nil, err
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[*string])
	var out []string
	for _, text := range list {
		if text != nil {
			out = append(out, *text)
		}
	}
	return out, err
}

// AwaitAll waits until both servers have recovered from the last fault.
func (s *servers) AwaitAll(ctx context.Context) error {
	return errors.Join(s.AwaitPrimary(ctx), s.AwaitStandby(ctx))
}
