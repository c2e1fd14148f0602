//go:build !nodev

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jobweaver/jobweaver/local/dev"
)

// ux 2: a pause is kept in the folder, and the next run has jobs that never start.
func TestDevPrintsWhatAnEarlierRunHasPaused(t *testing.T) {
	g := newGateway(t, map[string]string{"GET /api/controls": `{"controls":[
		{"kind":"queue","name":"default","paused":true},{"kind":"type","name":"A","maxRunning":2}]}`})
	var out strings.Builder
	sayPaused(t.Context(), dev.Options{Out: &out, Dir: t.TempDir()}, g.URL)
	if out.String() != "queue default is paused; bin/jobweaver resume queue default\n" {
		t.Errorf("it printed %q", out.String())
	}
}

// ux 11: after dev --port 18080, jobweaver list failed.
func TestDevPrintsWhereTheCommandLineFindsIt(t *testing.T) {
	t.Parallel()
	for url, printed := range map[string]bool{"http://127.0.0.1:18080": true, "https://127.0.0.1:8080": true, "http://127.0.0.1:8080": false} {
		var out strings.Builder
		welcome(dev.Options{Out: &out, Dir: t.TempDir()}, url)
		if strings.Contains(out.String(), "  export JOBWEAVER_URL="+url+"\n") != printed {
			t.Errorf("at %s it printed %s", url, out.String())
		}
	}
}

// ux 18: Ctrl-C is how to stop it, and was an error.
func TestCtrlCStopsDevWithExitCode0(t *testing.T) {
	t.Parallel()
	out, code := interrupted(t, "", "JobWeaver is up", "dev", "--demo", "--port", "0", "--dir", t.TempDir())
	if code != 0 || !strings.Contains(out, "stopping; the data stays in ") {
		t.Errorf("exit code %d, printed %s", code, out)
	}
}

// ux 18: make printed an error at Ctrl-C. It does not build here: the command line is this test.
func TestCtrlCStopsMakeRunWithExitCode0(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	makefile, err := filepath.Abs(root + "/Makefile")
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(dir, "bin/jobweaver")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "make", "-C", dir, "-f", makefile, "-o", "bin/jobweaver", "run", "ARGS=--port=0") //nolint:gosec // ours
	out, code := pressed(t, cmd, "", "The gateway stays at")
	if code != 0 || !strings.Contains(out, "stopping; the data stays in ") || strings.Contains(out, "***") {
		t.Errorf("exit code %d, printed %s", code, out)
	}
}
