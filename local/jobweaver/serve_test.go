package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/infra/laptop/freeport"
	"github.com/jobweaver/jobweaver/infra/laptop/localpostgres"
	"github.com/jobweaver/jobweaver/shared/funchost/probe"
	"github.com/jobweaver/jobweaver/shared/testwait"
)

// The commands of docs/servers.md, from an empty server to the first job.
func TestServeDoesItsFirstJobWithinTenSeconds(t *testing.T) {
	t.Parallel()
	postgres, err := localpostgres.Start(t.Context(), localpostgres.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = postgres.Stop() })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	port, keyFile := freeport.For(t), filepath.Join(t.TempDir(), "first.key")
	env := append(os.Environ(), processEnv+"=1", "DATABASE_URL="+postgres.URL(), "HOST=127.0.0.1", "PORT="+port,
		"JOBWEAVER_URL=http://127.0.0.1:"+port, "JOBWEAVER_API_KEY_FILE="+keyFile)
	began := time.Now()
	serve := exec.Command(self, "serve", "--key-file", keyFile) //nolint:gosec // ourselves
	serve.Env = env
	var log strings.Builder
	serve.Stdout, serve.Stderr = &log, &log
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(serve.Process.Signal(syscall.SIGTERM), serve.Wait()); err != nil {
			t.Errorf("serve ended with %v: %s", err, &log)
		}
	})
	testwait.Retry(t, func() error {
		n, _ := strconv.Atoi(port)
		return probe.AskReady(t.Context(), "127.0.0.1", n, false)
	})
	submit := exec.CommandContext(t.Context(), self, "submit", "--type", "SIMULATION", "--payload", //nolint:gosec // ourselves
		`{"steps":[{"type":"LOG","message":"hi"}]}`, "--watch")
	submit.Env = env
	out, err := submit.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	testwait.CheckPromptly(t, "from an empty server to the first job it", time.Since(began), 10*time.Second)
	if !strings.Contains(string(out), "COMPLETED") {
		t.Errorf("it printed %s", out)
	}
	doctor := exec.CommandContext(t.Context(), self, "doctor", "--skip", "disk") //nolint:gosec // ourselves
	doctor.Env = env
	if out, err := doctor.CombinedOutput(); err != nil || !strings.HasSuffix(string(out), "\n0 findings\n") {
		t.Errorf("doctor beside it: %v: %s", err, out)
	}
}
