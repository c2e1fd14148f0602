package funchost

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/testwait"
)

// processEnv makes the test binary a function's process; its value selects the function.
const processEnv = "FUNCHOST_TEST_PROCESS"

func processMain() {
	Main("tested", func(ctx context.Context, env *Env) (Function, error) {
		if os.Getenv(processEnv) == "starts" {
			_, _ = os.Stdout.WriteString("starting\n")
			<-ctx.Done() // as a function that waits for its database
			return Function{}, ctx.Err()
		}
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

// newProcess returns a function's process with a valid environment and the given changes.
func newProcess(t *testing.T, kind string, env ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(testwait.Within(t, time.Minute), self)
	cmd.Env = append([]string{
		processEnv + "=" + kind, "KAFKA_BROKERS=127.0.0.1:1", "DATABASE_URL=postgres://db", "HOST=127.0.0.1", "PORT=0",
	}, env...)
	return cmd
}

func TestASignalEndsAProcessCleanlyThatHasNotStarted(t *testing.T) {
	t.Parallel()
	out := runUntil(t, newProcess(t, "starts"), "starting", syscall.SIGTERM)
	if err := out.wait(); err != nil || strings.Contains(out.text.String(), "function failed") {
		t.Errorf("ended with %v: %s", err, &out.text)
	}
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
			if !strings.Contains(out.text.String(), `"msg":"function stopped","service":"tested"`) {
				t.Errorf("did not log that it stopped: %s", &out.text)
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
	if _ = out.wait(); cmd.ProcessState.ExitCode() != 1 || !strings.Contains(errors.String(), `"error":"stop within 10ms`) {
		t.Errorf("ended with %s: %s", cmd.ProcessState, &errors)
	}
}

func TestAProcessThatCannotStartLogsTheReasonInOneLine(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ env, want string }{
		{"DATABASE_URL=", `DATABASE_URL: is not set`},
		{"PORT=http", `PORT: "http" must be a whole number`},
		{"LOG_LEVEL=loud", `LOG_LEVEL: "loud" is none of debug, info, warn, error`},
		{"LOG_FORMAT=xml", `LOG_FORMAT: "xml" is neither json nor text`},
		{"KAFKA_REPLICATION_FACTOR=all", `KAFKA_REPLICATION_FACTOR: "all" must be a whole number`},
		{"KAFKA_REPLICATION_FACTOR=70000", `KAFKA_REPLICATION_FACTOR: "70000" is out of range`},
		{"KAFKA_TLS_ENABLED=maybe", `KAFKA_TLS_ENABLED: "maybe" must be true or false`},
		{"REQUIRE_TLS=on", "REQUIRE_TLS: is on, and there would be plain text by " +
			"DATABASE_URL (sslmode is neither verify-full nor verify-ca)"},
		{"SHUTDOWN_GRACE=30", `SHUTDOWN_GRACE: "30" must be a duration such as 30s`},
	} {
		t.Run(tt.env, func(t *testing.T) {
			t.Parallel()
			var line struct{ Level, Msg, Service, Error string }
			if err := json.Unmarshal(failed(t, tt.env), &line); err != nil {
				t.Error(err)
			}
			if line.Level != "ERROR" || line.Msg != "function failed" || line.Service != "tested" || line.Error != tt.want {
				t.Errorf("logged %+v, want %q", line, tt.want)
			}
		})
	}
	text := string(failed(t, "LOG_FORMAT=text", "DATABASE_URL="))
	if !strings.Contains(text, `level=ERROR msg="function failed" service=tested error="DATABASE_URL: is not set"`) {
		t.Errorf("logged %q", text)
	}
}

// failed returns the line that a process logs when it cannot start.
func failed(t *testing.T, env ...string) []byte {
	t.Helper()
	cmd := newProcess(t, "good", env...)
	var out bytes.Buffer
	cmd.Stderr = &out
	if err := cmd.Run(); cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("ended with %v", err)
	}
	if bytes.Count(out.Bytes(), []byte("\n")) != 1 {
		t.Errorf("not one line: %q", &out)
	}
	return out.Bytes()
}

// output is a process's stdout, read line by line.
type output struct {
	cmd   *exec.Cmd
	lines *bufio.Scanner
	text  strings.Builder
}

// runUntil starts a process, and signals it when it has printed the line.
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
	t.Fatalf("never printed %q: %s", line, &o.text)
}

func (o *output) wait() error {
	for o.lines.Scan() {
		o.text.WriteString(o.lines.Text() + "\n")
	}
	return o.cmd.Wait()
}
