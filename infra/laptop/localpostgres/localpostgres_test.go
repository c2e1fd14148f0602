package localpostgres

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"
)

// TestMain lets the test binary also be the process that starts a server and is killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv("LOCALPOSTGRES_TEST_DIR"); dir != "" {
		serveUntilKilled(dir)
	}
	goleak.VerifyTestMain(m)
}

func TestRowsSurviveKillAndRestart(t *testing.T) {
	t.Parallel()
	s := startServer(t, Config{Dir: t.TempDir()}) // with fsync
	run(t, s, "create table kept (n int); insert into kept values (1)")
	before := s.URL()
	for range 3 {
		if err := s.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := s.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		run(t, s, "insert into kept values (1)")
	}
	if got := ask(t, s, "select sum(n)::text from kept"); got != "4" {
		t.Errorf("rows after three kills: %s, want 4", got)
	}
	if s.URL() != before {
		t.Errorf("address moved from %s to %s", before, s.URL())
	}
}

func TestASecondStartFindsTheData(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := startServer(t, Config{Dir: dir, NoSync: true})
	run(t, s, "create table kept (n int)")
	if _, err := Start(t.Context(), Config{Dir: dir}); err == nil {
		t.Fatal("two servers on one folder")
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	run(t, startServer(t, Config{Dir: dir, NoSync: true}), "insert into kept values (1)")
}

func TestServerDiesWithAKilledProcessAndStartsAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	owner := exec.Command(os.Args[0])
	owner.Env = append(os.Environ(), "LOCALPOSTGRES_TEST_DIR="+dir)
	owner.Stderr = os.Stderr
	out, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), strings.TrimSpace(url))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), "create table kept (n int)"); err != nil {
		t.Fatal(err)
	}
	_ = owner.Process.Kill()
	_ = owner.Wait()
	run(t, startServer(t, Config{Dir: dir}), "insert into kept values (1)")
	if conn.Ping(t.Context()) == nil {
		t.Error("the killed process's server lives")
	}
	_ = conn.Close(t.Context())
}

func serveUntilKilled(dir string) {
	s, err := Start(context.Background(), Config{Dir: dir})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(s.URL())
	select {}
}

func TestALeftoverServerIsStopped(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	left := startServer(t, Config{Dir: dir})
	run(t, left, "create table kept (n int)")
	left.mu.Lock()
	_ = left.lock.Close() // as if its process had died without it
	left.lock = nil
	left.mu.Unlock()
	run(t, startServer(t, Config{Dir: dir}), "insert into kept values (1)")
	<-left.ended
}

func TestAReusedPidIsNotTakenForAServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := startServer(t, Config{Dir: dir, NoSync: true})
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(s.dataDir(), "postmaster.pid")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\n")
	if err := os.WriteFile(file, []byte(strconv.Itoa(os.Getpid())+"\n"+rest), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestRootCanRunTheServerAsAnotherUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can")
	}
	bin, err := binaries(t.Context(), identity{}, func(line string) { t.Log(line) })
	if err != nil {
		t.Fatal(err)
	}
	// Not t.TempDir: other users cannot enter its parent.
	open, err := os.MkdirTemp("", "localpostgres-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(open) })
	if err := os.Chmod(open, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(open, "postgres"), os.DirFS(filepath.Dir(bin))); err != nil {
		t.Fatal(err)
	}
	cfg := Config{Dir: filepath.Join(open, "server"), NoSync: true, Progress: func(string) {}}
	if err := os.Mkdir(cfg.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	s, err := start(t.Context(), cfg, filepath.Join(open, "postgres", "bin"), otherUser())
	if err != nil {
		t.Fatal(err)
	}
	stopAtEnd(t, s)
	run(t, s, "create table kept (n int)")
	// A later namespace takes over the same folder.
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	run(t, startServer(t, Config{Dir: cfg.Dir, NoSync: true}), "insert into kept values (1)")
}

func TestConcurrentFetchesKeepOneWholeCopy(t *testing.T) {
	t.Parallel()
	cache := t.TempDir()
	ready := filepath.Join(cache, "ready")
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			unpacked := filepath.Join(cache, strconv.Itoa(i))
			if err := os.MkdirAll(filepath.Join(unpacked, "bin", "postgres"), 0o755); err != nil {
				t.Error(err)
			}
			if err := keep(unpacked, ready); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if _, err := os.Stat(filepath.Join(ready, "bin", "postgres")); err != nil {
		t.Error(err)
	}
}

func TestATakenPortIsAClearError(t *testing.T) {
	t.Parallel()
	s := startServer(t, Config{Dir: t.TempDir(), NoSync: true})
	_, err := Start(t.Context(), Config{Dir: t.TempDir(), NoSync: true, Port: s.port})
	if err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("error %v does not say that the port is in use", err)
	}
}

func startServer(t *testing.T, cfg Config) *Server {
	t.Helper()
	cfg.Progress = func(line string) { t.Log(line) }
	s, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	stopAtEnd(t, s)
	return s
}

func stopAtEnd(t *testing.T, s *Server) {
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
}

func run(t *testing.T, s *Server, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

func ask(t *testing.T, s *Server, sql string) (answer string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	if err := conn.QueryRow(t.Context(), sql).Scan(&answer); err != nil {
		t.Fatal(err)
	}
	return answer
}

// Shells, direnv and CI services set libpq's variables for other programs. A start that cannot read its own address
// must not wait for ever.
func TestTheServerStartsWhateverVariablesOfLibpqAreSet(t *testing.T) {
	for name, value := range map[string]string{
		"PGSERVICE": "shop", "PGSSLROOTCERT": "/not/there", "PGTARGETSESSIONATTRS": "standby", "PGCHANNELBINDING": "require",
		"PGOPTIONS": "-c search_path=app", "PGCONNECT_TIMEOUT": "long", "PGPASSWORD": "wrong", "PGHOST": "elsewhere.invalid",
	} {
		t.Setenv(name, value)
	}
	startServer(t, Config{Dir: t.TempDir(), NoSync: true})
}
