package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A program must not be able to claim and settle other attempts.
func TestAProgramCannotReadTheKeyOfItsWorkerInProc(t *testing.T) {
	t.Parallel()
	claims := make(chan struct{}, 100)
	gateway := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if _, _ = io.Copy(io.Discard, r.Body); r.URL.Path == "/api/workers/claim" {
			claims <- struct{}{}
			<-r.Context().Done()
		}
	}))
	defer gateway.Close()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "work", "--type", "T", "--", "true") //nolint:gosec // ourselves
	cmd.Env = append(cmd.Environ(), processEnv+"=1", "JOBWEAVER_URL="+gateway.URL, "JOBWEAVER_API_KEY=jw_secret")
	if os.Geteuid() == 0 { // to root, all files of /proc belong to root
		cmd.Path, cmd.Dir = linked(t, self), "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	select {
	case <-claims:
	case <-time.After(time.Minute):
		t.Fatal("it claims nothing")
	}
	var environ unix.Stat_t
	if err := unix.Stat(fmt.Sprintf("/proc/%d/environ", cmd.Process.Pid), &environ); err != nil || environ.Uid != 0 {
		t.Errorf("it belongs to user %d, %v", environ.Uid, err)
	}
}

// linked returns a path of a file that every user reaches.
func linked(t *testing.T, file string) string {
	t.Helper()
	dir := t.TempDir()
	for _, of := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(of, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "jobweaver")
	if err := os.Link(file, path); err != nil {
		t.Fatal(err)
	}
	return path
}
