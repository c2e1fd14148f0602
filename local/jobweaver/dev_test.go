//go:build !nodev

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Ctrl-C is the way to stop dev, and was once reported as an error.
func TestCtrlCStopsDevWithExitCode0(t *testing.T) {
	t.Parallel()
	out, code := interrupted(t, "", "JobWeaver is up", "dev", "--demo", "--port", "0", "--dir", t.TempDir())
	if code != 0 || !strings.Contains(out, "stopping; the data stays in ") {
		t.Errorf("exit code %d, printed %s", code, out)
	}
}

// make once printed an error after Ctrl-C. This test builds nothing: it stands in for the command line.
func TestCtrlCStopsMakeRunWithExitCode0(t *testing.T) {
	t.Parallel()
	out, code := pressed(t, makeRun(t, "exit 0"), "", "The gateway stays at")
	if code != 0 || !strings.Contains(out, "stopping; the data stays in ") || strings.Contains(out, "***") {
		t.Errorf("exit code %d, printed %s", code, out)
	}
}

func TestCtrlCStopsMakeRunBeforeEverythingIsUp(t *testing.T) {
	t.Parallel()
	out, code := pressed(t, makeRun(t, "exit 0"), "", "creating a PostgreSQL database in")
	if code != 0 || !strings.Contains(out, "stopped before everything was up") || strings.Contains(out, "***") {
		t.Errorf("exit code %d, printed %s", code, out)
	}
}

func TestCtrlCStopsMakeRunWhileItCompiles(t *testing.T) {
	t.Parallel()
	build := makeRun(t, "if [ $1 = list ]; then echo runtime; else echo runtime; exec sleep 600; fi")
	out, code := pressed(t, build, "", "1 of up to 1 packages compiled: runtime")
	if code != 0 || !strings.Contains(out, "Stopped. The next build continues from here.") || strings.Contains(out, "***") {
		t.Errorf("exit code %d, printed %s", code, out)
	}
}

func TestFailedBuildFailsMakeRun(t *testing.T) {
	t.Parallel()
	out, err := makeRun(t, "echo '# broken'; exit 1").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "# broken\n") || strings.Contains(string(out), "packages compiled") {
		t.Errorf("%v, printed %s", err, out)
	}
}

// makeRun prepares make run in its own folder, with a shell script in place of go.
func makeRun(t *testing.T, script string) *exec.Cmd {
	t.Helper()
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	makefile, err := filepath.Abs(root + "/Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"bin", "infra"} {
		if err := os.Mkdir(filepath.Join(dir, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"bin/jobweaver": self, "infra/compile": filepath.Dir(makefile) + "/infra/compile"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	fake := filepath.Join(dir, "bin/go")
	if err := os.WriteFile(fake, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil { //nolint:gosec // it must be executable
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "make", "-C", dir, "-f", makefile, "run", "ARGS=--port=0") //nolint:gosec // ours
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(fake)+":"+os.Getenv("PATH"))
	return cmd
}
