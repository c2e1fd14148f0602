package upgrade

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/jobweaver/jobweaver/infra/laptop/childproc"
	"github.com/jobweaver/jobweaver/infra/laptop/freeport"
	"github.com/jobweaver/jobweaver/infra/laptop/localpostgres"
	"github.com/jobweaver/jobweaver/migrations"
)

const (
	readyWithin = time.Minute      // for the start of one process
	stopWithin  = 35 * time.Second // the default grace period, and a margin
)

// webhooks lets notify start.
const webhooks = "WEBHOOK_SECRETS=whsec_dXBncmFkZXRlc3QtdXBncmFkZXRlc3QtdXBncmFkZXRlc3Q="

// fixture has a server, a broker, and processes of functions.
type fixture struct {
	t        *testing.T
	dir      string
	builds   builds
	postgres *localpostgres.Server
	urls     migrations.URLs
	broker   *process
	brokers  string
	env      []string // of each function

	mu      sync.Mutex
	running map[string]*process // by function
}

// process is one run of a program.
type process struct {
	name  string
	port  string
	log   string
	cmd   *exec.Cmd
	ended <-chan struct{}
}

// open starts the servers. The databases are empty.
func open(t *testing.T, env ...string) *fixture {
	t.Helper()
	h := &fixture{t: t, builds: built(t), running: map[string]*process{}, env: append(env, webhooks)}
	var err error
	if h.dir, err = os.MkdirTemp("", "jobweaver-upgrade-"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.close)
	h.postgres, err = localpostgres.Start(t.Context(), localpostgres.Config{
		Dir: filepath.Join(h.dir, "postgres"), NoSync: true, Settings: map[string]string{"max_connections": "300"},
	})
	if err != nil {
		t.Fatal(err)
	}
	h.brokers = net.JoinHostPort("127.0.0.1", freeport.For(t))
	h.startBroker()
	h.passwords()
	return h
}

func (h *fixture) startBroker() {
	h.t.Helper()
	_, port, _ := net.SplitHostPort(h.brokers)
	h.broker = h.launch("broker", exec.Command(filepath.Join(h.builds.today, "broker")), "PORT="+port, "BROKER_DIR="+h.dir+"/broker")
}

// passwords writes a file for each role, as a secret is mounted.
func (h *fixture) passwords() {
	h.t.Helper()
	dir := filepath.Join(h.dir, "passwords")
	if err := os.Mkdir(dir, 0o700); err != nil {
		h.t.Fatal(err)
	}
	for _, function := range all() {
		role := migrations.Role(function)
		if err := os.WriteFile(filepath.Join(dir, role), []byte(h.postgres.Password(role)), 0o600); err != nil {
			h.t.Fatal(err)
		}
	}
	var urls migrations.URLs
	for set, to := range map[string]*string{
		migrations.API.Database(): &urls.API, migrations.Scheduler.Database(): &urls.Scheduler,
		migrations.Worker.Database(): &urls.Worker,
	} {
		var err error
		if *to, err = migrations.WithDatabase(h.postgres.URL(), set); err != nil {
			h.t.Fatal(err)
		}
	}
	h.urls = urls
}

// migrate and createTopics run the Jobs of a deployment.
func (h *fixture) migrate(bin string) error {
	return h.run(bin, "migrate", "--roles", "--passwords", filepath.Join(h.dir, "passwords"))
}

func (h *fixture) createTopics(bin string) error { return h.run(bin, "topics", "create") }

func (h *fixture) run(bin string, args ...string) error {
	ctx, cancel := context.WithTimeout(h.t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "jobweaver"), args...)
	cmd.Env = []string{"DATABASE_URL=" + h.postgres.URL(), "KAFKA_BROKERS=" + h.brokers, "PATH=" + os.Getenv("PATH")}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("jobweaver %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

// jobs runs both Jobs in four processes each, as when Jobs are applied again while others still run.
func (h *fixture) jobs(bin string) {
	h.t.Helper()
	var all errgroup.Group
	for range 4 {
		all.Go(func() error { return h.migrate(bin) })
		all.Go(func() error { return h.createTopics(bin) })
	}
	if err := all.Wait(); err != nil {
		h.t.Fatal(err)
	}
}

// start runs a function of a build, and waits until it is ready.
func (h *fixture) start(bin, function string) *process {
	h.t.Helper()
	p := h.begin(bin, function)
	if err := p.await(h.t.Context(), "readiness", http.StatusOK, readyWithin); err != nil {
		h.t.Fatalf("%s of %s is not ready: %v\n%s", function, filepath.Base(bin), err, p.tail())
	}
	return p
}

func (h *fixture) begin(bin, function string) *process {
	h.t.Helper()
	url, err := h.urls.As(function, h.postgres.Password(migrations.Role(function)))
	if err != nil {
		h.t.Fatal(err)
	}
	port := freeport.For(h.t)
	p := h.launch(filepath.Base(bin)+"-"+function, exec.Command(filepath.Join(bin, function)), append([]string{
		"HOST=127.0.0.1", "AUTH=off", "PORT=" + port, "DATABASE_URL=" + url, "KAFKA_BROKERS=" + h.brokers,
	}, h.env...)...)
	p.port = port
	return p
}

func (h *fixture) launch(name string, cmd *exec.Cmd, env ...string) *process {
	h.t.Helper()
	log, err := os.CreateTemp(h.dir, name+"-*.log")
	if err != nil {
		h.t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	p := &process{name: name, log: log.Name(), cmd: cmd}
	p.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir()}, env...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	if p.ended, err = childproc.Start(p.cmd, syscall.SIGKILL); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(p.kill)
	return p
}

// roll replaces the running process of a function by one of a build, as a Deployment does: the new one is ready
// before the old one is stopped.
func (h *fixture) roll(bin, function string) {
	h.t.Helper()
	next := h.start(bin, function)
	h.mu.Lock()
	last := h.running[function]
	h.running[function] = next
	h.mu.Unlock()
	if last != nil {
		if err := last.stop(); err != nil {
			h.t.Fatalf("%s: %v\n%s", last.name, err, last.tail())
		}
	}
}

// gateway returns the URL of the running gateway.
func (h *fixture) gateway() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return "http://127.0.0.1:" + h.running["gateway"].port
}

func (h *fixture) exec(url, sql string) {
	h.t.Helper()
	conn, err := pgx.Connect(h.t.Context(), url)
	if err != nil {
		h.t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if _, err := conn.Exec(h.t.Context(), sql); err != nil {
		h.t.Fatal(err)
	}
}

func (h *fixture) close() {
	if h.postgres != nil {
		_ = h.postgres.Kill()
		_ = h.postgres.Stop()
	}
	if h.t.Failed() || *keep {
		h.t.Logf("logs and data are in %s", h.dir)
		return
	}
	_ = os.RemoveAll(h.dir)
}

func (p *process) signal(sig syscall.Signal) { _ = p.cmd.Process.Signal(sig) }

func (p *process) kill() {
	p.signal(syscall.SIGKILL)
	<-p.ended
}

// stop asks the process to end, which it must do in time and with exit code 0.
func (p *process) stop() error {
	p.signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(stopWithin):
		return errors.New("it does not stop")
	}
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("it ended with %d", code)
	}
	return nil
}

func (p *process) tail() string {
	text, _ := os.ReadFile(p.log)
	return string(bytes.TrimSpace(text[max(0, len(text)-3000):]))
}

// probe sends one request, and returns how long the answer took.
func (p *process) probe(ctx context.Context, which string) (status int, body string, took time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:"+p.port+"/health/"+which, nil)
	if err != nil {
		return 0, "", 0, err
	}
	began := time.Now()
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", 0, err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	return res.StatusCode, string(text), time.Since(began), err
}

// await repeats the request until a probe has the status.
func (p *process) await(ctx context.Context, which string, want int, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		status, body, _, err := p.probe(ctx, which)
		if err == nil && status == want {
			return nil
		}
		select {
		case <-p.ended:
			return fmt.Errorf("it ended: %s", p.cmd.ProcessState)
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("%s is %d %s, not %d", which, status, strings.TrimSpace(body), want), err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
