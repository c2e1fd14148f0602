package main

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/creack/pty"

	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
)

// processEnv makes this test's binary run the command line.
const processEnv = "JOBWEAVER_TEST_PROCESS"

// interrupted starts the command line on a terminal, presses Ctrl-C once it has printed the text, and returns its
// output and its exit code.
func interrupted(t *testing.T, url, text string, args ...string) (string, int) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return pressed(t, exec.CommandContext(t.Context(), self, args...), url, text) //nolint:gosec // ourselves
}

// pressed does the same with a command that starts the command line.
func pressed(t *testing.T, cmd *exec.Cmd, url, text string) (string, int) {
	t.Helper()
	cmd.Env = append(cmd.Environ(), processEnv+"=1", "JOBWEAVER_URL="+url)
	person, err := pty.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = person.Close() }()
	keepOutput(t, person)
	var seen bytes.Buffer
	done := false
	for piece := make([]byte, 4096); err == nil; {
		var n int
		n, err = person.Read(piece)
		seen.Write(piece[:n])
		if !done && strings.Contains(seen.String(), text) {
			done = true
			if _, err := io.WriteString(person, "\x03"); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	return seen.String(), cmd.ProcessState.ExitCode()
}

// keepOutput keeps a terminal from discarding what is not read yet when Ctrl-C is pressed. The kernel discards it after it
// has sent the signal, and would take along what a quick program prints on its end.
func keepOutput(t *testing.T, terminal *os.File) {
	t.Helper()
	stty := exec.CommandContext(t.Context(), "stty", "noflsh")
	stty.Stdin = terminal
	if out, err := stty.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

func TestCtrlCAtAPromptEndsTheCommandWithoutAChange(t *testing.T) {
	t.Parallel()
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method != http.MethodGet:
			t.Errorf("asked %s %s", r.Method, r.URL)
		case r.URL.Path == "/api/jobs":
			_, _ = io.WriteString(w, `{"jobs":[{"jobId":"j1"}]}`)
		case r.URL.Query().Has("wait"):
			<-r.Context().Done()
		default:
			_, _ = io.WriteString(w, `{"jobId":"j1","status":"RUNNING"}`)
		}
	}))
	t.Cleanup(gateway.Close)
	for args, text := range map[string]string{"delete --all": "delete 1 job? [y/N] ", "watch j1": "RUNNING"} {
		if out, code := interrupted(t, gateway.URL, text, strings.Fields(args)...); code != cli.ExitInterrupted {
			t.Errorf("%s: exit code %d, printed %q", args, code, out)
		}
	}
}
