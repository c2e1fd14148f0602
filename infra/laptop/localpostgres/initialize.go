package localpostgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

const superuser = "postgres"

// initialize makes the data folder if there is none, and reads the password.
func (s *Server) initialize(ctx context.Context) error {
	if _, err := os.Stat(s.dataDir()); errors.Is(err, fs.ErrNotExist) {
		if err := s.initdb(ctx); err != nil {
			return err
		}
	}
	if s.password == "" {
		password, err := os.ReadFile(s.passwordFile())
		if err != nil {
			return fmt.Errorf("read password: %w", err)
		}
		s.password = string(password)
	}
	return s.who.own(s.cfg.Dir)
}

func (s *Server) passwordFile() string { return filepath.Join(s.cfg.Dir, "password") }

// initdb works beside the data folder and renames at the end: if it is killed half-way, the next try starts over.
// Each try has a name of its own, since that of a killed process may still run.
func (s *Server) initdb(ctx context.Context) error {
	s.cfg.Progress("creating a PostgreSQL database in " + s.cfg.Dir)
	left, _ := filepath.Glob(s.dataDir() + ".new-*")
	for _, dir := range left {
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("clear half-made data: %w", err)
		}
	}
	half, err := os.MkdirTemp(s.cfg.Dir, "data.new-")
	if err != nil {
		return fmt.Errorf("make data folder: %w", err)
	}
	if err := os.WriteFile(s.passwordFile(), []byte(rand.Text()), 0o600); err != nil {
		return fmt.Errorf("write password: %w", err)
	}
	if err := s.who.own(s.cfg.Dir); err != nil {
		return err
	}
	args := []string{
		"-D", half, "-U", superuser, "--pwfile", s.passwordFile(), "--auth=scram-sha-256",
		"-c", "scram_iterations=1", // stretching helps weak passwords; this one has 128 random bits
		"--encoding=UTF8", "--no-locale", "--no-instructions",
	}
	if s.cfg.NoSync {
		args = append(args, "--no-sync", "--no-data-checksums")
	}
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, "initdb"), args...)
	s.who.apply(cmd)
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true // Ctrl-C reaches only this process: it ends ctx, and that ends initdb
	if out, err := cmd.CombinedOutput(); err != nil {
		if ctx.Err() != nil || interrupted(err) {
			return fmt.Errorf("initialize PostgreSQL: %w", context.Canceled)
		}
		return fmt.Errorf("initialize PostgreSQL: %w\n%s", err, out)
	}
	if err := os.Rename(half, s.dataDir()); err != nil {
		return fmt.Errorf("keep initialized data: %w", err)
	}
	return nil
}

// interrupted reports whether a child died of a terminal's Ctrl-C. That can happen before it has a process group of
// its own, and be noticed before the signal has ended this process's context.
func interrupted(err error) bool {
	died := (*exec.ExitError)(nil)
	if !errors.As(err, &died) {
		return false
	}
	status, ok := died.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGINT
}
