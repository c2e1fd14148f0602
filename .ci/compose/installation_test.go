package compose_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/infra/laptop/freeport"
	"github.com/jobweaver/jobweaver/infra/laptop/localkafka"
	"github.com/jobweaver/jobweaver/infra/laptop/localpostgres"
	"github.com/jobweaver/jobweaver/local/mailcatch"
)

const patience = time.Minute // for steps that take a second or two

// installation runs the services of docker-compose.yml on this machine's loopback. In a service's environment it
// replaces the name and port of another container by the address where this test runs that container, and changes
// nothing else.
type installation struct {
	t       *testing.T
	project *types.Project
	how     launcher
	names   *strings.Replacer
	mails   *mailcatch.Server
	gateway string // URL
	worker  string // address
	server  string // address of PostgreSQL
	began   time.Time
	key     string // an admin's

	running sync.WaitGroup
	up      map[string]chan struct{} // closed: the services that depend on it may start
	mu      sync.Mutex
	started []*process
}

// process is one container, or its replacement.
type process struct {
	name  string
	cmd   *exec.Cmd
	out   bytes.Buffer
	probe []string // what its health check runs
	env   []string
	ended chan struct{}
}

// launcher starts a service's command, and returns what its health check runs.
type launcher interface {
	command(s types.ServiceConfig, env []string, args []string) (cmd *exec.Cmd, probe []string)
	// awaitStart waits until the next process may be started.
	awaitStart(p *process)
	// at returns the folder of the service for a path in the file, which may be in a volume.
	at(path string) string
	// found returns the folder where this test finds the content of a volume.
	found(t *testing.T, volume types.ServiceVolumeConfig) string
	cleanUp(t *testing.T) // called after all processes have stopped
}

func newInstallation(t *testing.T, how launcher, startKafka func(context.Context, localkafka.Config) (*localkafka.Server, error)) *installation {
	t.Helper()
	h := &installation{t: t, project: load(t), how: how, up: map[string]chan struct{}{}}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	kafka, err := startKafka(ctx, localkafka.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = kafka.Stop() })
	t.Cleanup(func() { how.cleanUp(t) })
	if h.mails, err = mailcatch.Start(mailcatch.Config{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.mails.Close() })
	h.gateway, h.worker = "http://127.0.0.1:"+freeport.For(t), "127.0.0.1:"+freeport.For(t)
	for name := range h.project.Services {
		h.up[name] = make(chan struct{})
	}
	close(h.up["kafka"])
	h.names = strings.NewReplacer(secretsFolder, how.at(secretsFolder))
	h.run(h.project.Services["secrets"]) // first: the server mounts its volumes, too
	h.server = h.startPostgres(ctx)
	h.names = strings.NewReplacer("postgres:5432", h.server, "kafka:9092", kafka.Brokers()[0],
		"worker:8080", h.worker, "http://localhost:8080", h.gateway, "/var/jobweaver/", how.at("/var/jobweaver/"), secretsFolder, how.at(secretsFolder))
	close(h.up["postgres"])
	h.began = time.Now()
	t.Cleanup(h.stop) // before the servers
	for _, service := range ours(h.project) {
		if service.Name != "secrets" && len(service.Profiles) == 0 {
			h.running.Go(func() { h.run(service) })
		}
	}
	for _, service := range ours(h.project) {
		if len(service.Profiles) == 0 { // services with a profile start on request
			h.await(service.Name)
		}
	}
	return h
}

func embedded(_ context.Context, cfg localkafka.Config) (*localkafka.Server, error) {
	return localkafka.StartEmbedded(cfg)
}

// startPostgres has the settings and the password of the file.
func (h *installation) startPostgres(ctx context.Context) (address string) {
	h.t.Helper()
	service := h.project.Services["postgres"]
	settings := map[string]string{}
	for i, arg := range service.Command {
		if arg == "-c" {
			name, value, _ := strings.Cut(service.Command[i+1], "=")
			settings[name] = value
		}
	}
	server, err := localpostgres.Start(ctx, localpostgres.Config{Dir: h.t.TempDir(), NoSync: true, Settings: settings})
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = server.Stop() })
	conn, err := pgx.Connect(ctx, server.URL())
	if err != nil {
		h.t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	password := h.secret("postgres", values(h.t, service)["POSTGRES_PASSWORD_FILE"])
	if _, err := conn.Exec(ctx, fmt.Sprintf("ALTER ROLE postgres PASSWORD '%s'", password)); err != nil {
		h.t.Fatal(err)
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(int(conn.Config().Port)))
}

// secret returns what a service reads from a file in a mounted volume.
func (h *installation) secret(service, path string) string {
	h.t.Helper()
	for _, volume := range h.project.Services[service].Volumes {
		if volume.Target != filepath.Dir(path) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(h.how.found(h.t, volume), filepath.Base(path)))
		if err != nil {
			h.t.Fatal(err)
		}
		return strings.TrimRight(string(text), "\n")
	}
	h.t.Fatalf("%s has no volume for %s", service, path)
	return ""
}

// environment returns exactly the service's environment, with addresses in place of the other services' names, and with
// ports of its own.
func (h *installation) environment(s types.ServiceConfig) []string {
	port := freeport.For(h.t)
	switch s.Name {
	case "api":
		port = h.gateway[strings.LastIndex(h.gateway, ":")+1:]
	case "worker":
		port = h.worker[strings.LastIndex(h.worker, ":")+1:]
	}
	env := []string{"HOST=127.0.0.1", "PORT=" + port}
	for name, value := range values(h.t, s) {
		switch name {
		case "SMTP_HOST":
			value = h.mails.Host()
		case "SMTP_PORT":
			value = strconv.Itoa(h.mails.Port())
		case "METRICS_PORT":
			value = freeport.For(h.t)
		default:
			value = h.names.Replace(value)
		}
		env = append(env, name+"="+value)
	}
	slices.Sort(env)
	return env
}

// run starts a service as `docker compose up` does.
func (h *installation) run(s types.ServiceConfig) {
	for name := range s.DependsOn {
		select {
		case <-h.up[name]:
		case <-h.t.Context().Done():
			return
		}
	}
	p := &process{name: s.Name, env: h.environment(s), ended: make(chan struct{})}
	p.cmd, p.probe = h.how.command(s, p.env, h.arguments(s, s.Command))
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	h.mu.Lock()
	err := p.cmd.Start()
	if err == nil {
		h.started = append(h.started, p)
		go func() { _ = p.cmd.Wait(); close(p.ended) }()
		h.how.awaitStart(p)
	}
	h.mu.Unlock()
	if err != nil {
		h.t.Errorf("%s: %v", s.Name, err)
		return
	}
	if s.HealthCheck == nil { // a service without a health check runs once and ends
		<-p.ended
		if code := p.cmd.ProcessState.ExitCode(); code != 0 {
			h.t.Errorf("%s ended with %d: %s", s.Name, code, &p.out)
			return
		}
		close(h.up[s.Name])
		return
	}
	if h.healthy(p) {
		close(h.up[s.Name])
	}
}

// arguments returns the arguments after the program's name, which the image sets.
func (h *installation) arguments(s types.ServiceConfig, command []string) []string {
	args := slices.Clone(command)
	if len(s.Entrypoint) > 0 {
		args = slices.Concat(s.Entrypoint[1:], args)
	}
	for i, arg := range args {
		args[i] = strings.TrimSuffix(h.names.Replace(arg+"/"), "/")
	}
	return args
}

func (h *installation) healthy(p *process) bool {
	for h.t.Context().Err() == nil {
		probe := exec.CommandContext(h.t.Context(), p.probe[0], p.probe[1:]...)
		probe.Env = append(os.Environ(), p.env...)
		if probe.Run() == nil {
			return true
		}
		select {
		case <-p.ended:
			h.t.Errorf("%s ended with %s: %s", p.name, p.cmd.ProcessState, &p.out)
			return false
		case <-time.After(100 * time.Millisecond): // a probe's interval
		}
	}
	return false
}

func (h *installation) await(name string) {
	h.t.Helper()
	select {
	case <-h.up[name]:
	case <-time.After(patience):
		h.t.Fatalf("%s is not up after %s", name, patience)
	}
}

// stop lets each function end by itself, as `docker compose stop` does.
func (h *installation) stop() {
	h.running.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.started {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
	}
	for _, p := range h.started {
		select {
		case <-p.ended:
		case <-time.After(patience):
			_ = p.cmd.Process.Kill()
			<-p.ended
		}
		if code := p.cmd.ProcessState.ExitCode(); code != 0 {
			h.t.Errorf("%s ended with %d: %s", p.name, code, &p.out)
		}
	}
	if h.t.Failed() {
		for _, p := range h.started {
			h.t.Logf("%s: %s", p.name, &p.out)
		}
	}
}

// binaries are run as plain processes, of the program that infra/image-root made.
type binaries struct{ app, data string }

func (b binaries) command(s types.ServiceConfig, env, args []string) (*exec.Cmd, []string) {
	cmd := exec.Command(b.app, args...)
	cmd.Env = env
	if s.HealthCheck == nil {
		return cmd, nil
	}
	return cmd, append([]string{b.app}, s.HealthCheck.Test[2:]...)
}

func (binaries) awaitStart(*process) {}

func (b binaries) at(path string) string { return filepath.Join(b.data, path) + "/" }

func (b binaries) found(_ *testing.T, volume types.ServiceVolumeConfig) string {
	return b.at(volume.Target)
}

func (b binaries) cleanUp(*testing.T) {}
