package serve_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/functions"
	"github.com/jobweaver/jobweaver/infra/laptop/freeport"
	"github.com/jobweaver/jobweaver/infra/laptop/localpostgres"
	"github.com/jobweaver/jobweaver/local/serve"
	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/testwait"
)

// processEnv makes this test's binary a process of serve, with the functions that it names.
const processEnv = "SERVE_TEST_PROCESS"

func TestMain(m *testing.M) {
	names, is := os.LookupEnv(processEnv)
	if !is {
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	o := serve.Options{Out: os.Stdout, NoMigrate: os.Getenv(processEnv+"_NO_MIGRATE") != ""}
	if names != "" {
		o.Functions = strings.Split(names, ",")
	}
	if at := os.Getenv(processEnv + "_STOP_AT"); at != "" {
		stopAt(at, stop)
	}
	err := serve.Run(ctx, o)
	stop()
	if err != nil {
		fmt.Println("ended with", err)
		os.Exit(1)
	}
}

// stopAt stops the process when it begins to wire a function.
func stopAt(name string, stop func()) {
	for i, f := range functions.All {
		if f.Name == name {
			functions.All[i].Wire = func(ctx context.Context, env *funchost.Env) (funchost.Function, error) {
				stop()
				return f.Wire(ctx, env)
			}
		}
	}
}

// server starts a PostgreSQL of this test's own: the databases have the same names everywhere.
func server(t *testing.T) *localpostgres.Server {
	t.Helper()
	s, err := localpostgres.Start(t.Context(), localpostgres.Config{Dir: t.TempDir(), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop() })
	return s
}

// process is a running serve.
type process struct {
	t   *testing.T
	cmd *exec.Cmd
	url string

	mu    sync.Mutex
	out   bytes.Buffer
	ended chan struct{}
}

func start(t *testing.T, database, functions string, env ...string) *process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	port := freeport.For(t)
	p := &process{t: t, cmd: exec.Command(self), url: "http://127.0.0.1:" + port, ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), append([]string{
		processEnv + "=" + functions, "DATABASE_URL=" + database, "HOST=127.0.0.1", "PORT=" + port, "LOG_FORMAT=text",
		"OUTBOUND_ALLOW=127.0.0.0/8", "SHUTDOWN_DELAY=0s",
	}, env...)...)
	p.cmd.Stdout, p.cmd.Stderr = p, p
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.ended
		if t.Failed() {
			t.Log(p.text())
		}
	})
	return p
}

// Write takes what the process prints.
func (p *process) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.Write(text)
}

func (p *process) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

// get returns the status and the body of a page.
func (p *process) get(path string) (status int, body string) {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, p.url+path, http.NoBody)
	if err != nil {
		p.t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = res.Body.Close() }()
	var text bytes.Buffer
	_, _ = text.ReadFrom(res.Body)
	return res.StatusCode, text.String()
}

// untilReady waits until clients can send requests.
func (p *process) untilReady() {
	p.t.Helper()
	p.until("it is ready", func() bool {
		status, _ := p.get("/health/readiness")
		return status == http.StatusOK
	})
}

// until waits for a condition while the process runs.
func (p *process) until(condition string, holds func() bool) {
	p.t.Helper()
	testwait.Until(p.t, condition, func() bool {
		select {
		case <-p.ended:
			if holds() {
				return true
			}
			p.t.Fatalf("the process has ended before %s", condition)
		default:
		}
		return holds()
	})
}

var firstKey = regexp.MustCompile(`JOBWEAVER_API_KEY=(jw_\S+)`)

// key returns the API key that the process printed.
func (p *process) key() string {
	p.t.Helper()
	found := firstKey.FindStringSubmatch(p.text())
	if found == nil {
		p.t.Fatal("it printed no key")
	}
	return found[1]
}

func (p *process) client(key string) *client.Client { return client.New(p.url, key) }

// stop sends a signal and returns the exit code; -1: the signal killed it.
func (p *process) stop(signal syscall.Signal) int {
	p.t.Helper()
	if err := p.cmd.Process.Signal(signal); err != nil {
		p.t.Fatal(err)
	}
	select {
	case <-p.ended:
	case <-time.After(time.Minute):
		p.t.Fatal("it does not end")
	}
	return p.cmd.ProcessState.ExitCode()
}

func (p *process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

func hello() client.JobRequest {
	return client.JobRequest{JobType: "SIMULATION", Payload: map[string]any{"steps": []any{map[string]any{"type": "LOG", "message": "hi"}}}}
}
