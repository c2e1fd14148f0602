package examples

import (
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/jobweaver/jobweaver/infra/laptop/childproc"
	"github.com/jobweaver/jobweaver/infra/laptop/freeport"
	"github.com/jobweaver/jobweaver/shared/kafkatest"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

// all is set by make test-examples, which first installs what the other languages need.
var all = flag.Bool("examples.all", false, "run the functions in Python and JavaScript too")

// languages start the function of each language, in its folder.
var languages = map[string]func(t *testing.T) []string{
	"go":         func(t *testing.T) []string { return []string{binary(t, "function-go")} },
	"python":     func(*testing.T) []string { return []string{".venv/bin/python", "main.py"} },
	"javascript": func(*testing.T) []string { return []string{"node", "main.js"} },
}

// inEach runs a test for the function of each language.
func inEach(t *testing.T, test func(t *testing.T, language string)) {
	t.Parallel()
	for language := range languages {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			mayRun(t, language)
			test(t, language)
		})
	}
}

func mayRun(t *testing.T, language string) {
	t.Helper()
	if language != "go" && !*all {
		t.Skip("needs what make test-examples installs")
	}
}

// program is a process that listens at an address.
type program struct {
	url   string
	cmd   *exec.Cmd
	ended <-chan struct{}
}

// function starts the function of a language.
func function(t *testing.T, language string, env ...string) *program {
	t.Helper()
	return start(t, "function-"+language, languages[language](t), env...)
}

// start starts a program in its folder, and waits until it listens.
func start(t *testing.T, dir string, command []string, env ...string) *program {
	t.Helper()
	port := freeport.For(t)
	p := &program{url: "http://127.0.0.1:" + port, cmd: exec.Command(command[0], command[1:]...)}
	p.cmd.Dir = dir
	p.cmd.Env = append([]string{"HOST=127.0.0.1", "PORT=" + port, "PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}, env...)
	p.cmd.Stdout, p.cmd.Stderr = t.Output(), t.Output()
	p.cmd.WaitDelay = time.Second
	var err error
	if p.ended, err = childproc.Start(p.cmd, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it has ended already if the test stopped it
		<-p.ended
	})
	deadline := time.After(30 * time.Second)
	for {
		if conn, err := net.Dial("tcp", "127.0.0.1:"+port); err == nil {
			_ = conn.Close()
			return p
		}
		select {
		case <-p.ended:
			t.Fatalf("%s ended: %s", dir, p.cmd.ProcessState)
		case <-deadline:
			t.Fatalf("%s does not listen", dir)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// stop asks the process to end, and returns its exit code.
func (p *program) stop(t *testing.T) int {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.ended:
	case <-time.After(30 * time.Second):
		t.Fatal("it does not stop")
	}
	return p.cmd.ProcessState.ExitCode()
}

// binary builds a Go program, once in each run of the tests.
func binary(t *testing.T, name string) string {
	t.Helper()
	building.Lock()
	defer building.Unlock()
	path := filepath.Join(building.dir, name)
	if _, err := os.Stat(path); err == nil {
		return path
	}
	if out, err := exec.Command("go", "build", "-C", name, "-o", path, ".").CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", name, err, out)
	}
	return path
}

var building struct {
	sync.Mutex
	dir string
}

func TestMain(m *testing.M) {
	flag.Parse()
	dir, err := os.MkdirTemp("", "jobweaver-examples-")
	if err != nil {
		panic(err)
	}
	building.dir = dir
	code := m.Run()
	_ = os.RemoveAll(dir)
	http.DefaultClient.CloseIdleConnections()
	if err := pgtest.StopServer(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	if err := goleak.Find(kafkatest.IgnoreSarama()); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
