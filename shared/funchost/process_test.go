package funchost

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// processEnv makes the test binary a function's process; its value says which.
const processEnv = "FUNCHOST_TEST_PROCESS"

func processMain() {
	Main("tested", func(_ context.Context, env *Env) (Function, error) {
		env.OnClose(func() { _, _ = os.Stdout.WriteString("closed " + env.DatabaseURL() + "\n") })
		return Function{Name: "tested", Run: func(ctx context.Context, _ Publish) error {
			_, _ = os.Stdout.WriteString("running\n")
			<-ctx.Done()
			if os.Getenv(processEnv) == "hangs" {
				_, _ = os.Stdout.WriteString("hanging\n")
				select {}
			}
			return nil
		}}, nil
	})
}

// newProcess is a function's process with the environment of a good one, and with the given changes.
func newProcess(t *testing.T, kind string, env ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(within(t, time.Minute), self)
	cmd.Env = append([]string{
		processEnv + "=" + kind, "KAFKA_BROKERS=127.0.0.1:1", "DATABASE_URL=postgres://db", "HOST=127.0.0.1", "PORT=0",
	}, env...)
	return cmd
}

func TestASignalEndsAProcessCleanly(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			out := runUntil(t, newProcess(t, "good"), "running", signal)
			if err := out.wait(); err != nil {
				t.Errorf("ended with %v", err)
			}
			if !strings.Contains(out.text.String(), "closed postgres://db") {
				t.Errorf("did not close: %s", &out.text)
			}
		})
	}
}

func TestASecondSignalEndsAProcessAtOnce(t *testing.T) {
	t.Parallel()
	cmd := newProcess(t, "hangs")
	out := runUntil(t, cmd, "running", syscall.SIGTERM)
	out.until(t, "hanging")
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if _ = out.wait(); cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("ended with %s", cmd.ProcessState)
	}
}

func TestAStopThatTakesTooLongEndsWithOne(t *testing.T) {
	t.Parallel()
	cmd := newProcess(t, "hangs", "SHUTDOWN_GRACE=10ms")
	var errors bytes.Buffer
	cmd.Stderr = &errors
	out := runUntil(t, cmd, "running", syscall.SIGTERM)
	if _ = out.wait(); cmd.ProcessState.ExitCode() != 1 || !strings.HasPrefix(errors.String(), "tested: stop within 10ms") {
		t.Errorf("ended with %s: %s", cmd.ProcessState, &errors)
	}
}

func TestAProcessThatCannotStartSaysWhyInOneLine(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ env, want string }{
		{"DATABASE_URL=", "tested: DATABASE_URL: is not set\n"},
		{"PORT=http", "tested: PORT: \"http\" is no int\n"},
		{"LOG_LEVEL=loud", "tested: LOG_LEVEL: \"loud\" is none of debug, info, warn, error\n"},
		{"KAFKA_REPLICATION_FACTOR=all", "tested: KAFKA_REPLICATION_FACTOR: \"all\" is no int16\n"},
		{"REQUIRE_TLS=on", "tested: REQUIRE_TLS: is on, and there would be plain text by " +
			"DATABASE_URL (sslmode is neither verify-full nor verify-ca)\n"},
		{"SHUTDOWN_GRACE=30", "tested: SHUTDOWN_GRACE: \"30\" is no time.Duration\n"},
	} {
		t.Run(tt.env, func(t *testing.T) {
			t.Parallel()
			cmd := newProcess(t, "good", tt.env)
			var errors bytes.Buffer
			cmd.Stderr = &errors
			if err := cmd.Run(); cmd.ProcessState.ExitCode() != 1 {
				t.Errorf("ended with %v", err)
			}
			if errors.String() != tt.want {
				t.Errorf("said %q, want %q", &errors, tt.want)
			}
		})
	}
}

// output is a process's stdout, read line by line.
type output struct {
	cmd   *exec.Cmd
	lines *bufio.Scanner
	text  strings.Builder
}

// runUntil starts a process and signals it when it has said the line.
func runUntil(t *testing.T, cmd *exec.Cmd, line string, signal syscall.Signal) *output {
	t.Helper()
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out := &output{cmd: cmd, lines: bufio.NewScanner(pipe)}
	out.until(t, line)
	if err := cmd.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	return out
}

func (o *output) until(t *testing.T, line string) {
	t.Helper()
	for o.lines.Scan() {
		o.text.WriteString(o.lines.Text() + "\n")
		if o.lines.Text() == line {
			return
		}
	}
	t.Fatalf("never said %q: %s", line, &o.text)
}

func (o *output) wait() error {
	for o.lines.Scan() {
		o.text.WriteString(o.lines.Text() + "\n")
	}
	return o.cmd.Wait()
}
