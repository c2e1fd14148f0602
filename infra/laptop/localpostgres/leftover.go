package localpostgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jobweaver/jobweaver/infra/laptop/folderlock"
	"github.com/jobweaver/jobweaver/shared/retry"
)

// stopLeftover ends the server that a killed process left on the data folder, whose lock this process holds: it runs
// with that process's settings and would survive this one. The pid file of a reused pid is deleted, otherwise
// PostgreSQL would take that process for a living server.
func stopLeftover(ctx context.Context, data string) error {
	file := filepath.Join(data, "postmaster.pid")
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read postmaster.pid: %w", err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(first))
	if err != nil || !serves(pid, data) {
		if err == nil && alive(pid) {
			return os.Remove(file)
		}
		return nil // PostgreSQL deletes the file itself, after a check for living backends
	}
	_ = syscall.Kill(pid, syscall.SIGQUIT) // an error means that it has just ended
	for deadline := time.Now().Add(launchPatience); serves(pid, data); {
		if time.Now().After(deadline) {
			return fmt.Errorf("stop leftover PostgreSQL: process %d does not end", pid)
		}
		if !retry.Pause(ctx, 20*time.Millisecond) {
			return ctx.Err()
		}
	}
	return nil
}

func alive(pid int) bool { return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

// RemoveAbandoned removes an abandoned server's folder, unless a living process uses it or has just made it.
func RemoveAbandoned(ctx context.Context, dir string) error {
	info, err := os.Stat(filepath.Join(dir, folderlock.Name))
	if err != nil || time.Since(info.ModTime()) < time.Minute {
		return nil
	}
	lock, err := folderlock.Take(dir)
	if err != nil {
		return nil
	}
	defer func() { _ = lock.Close() }()
	if err := stopLeftover(ctx, filepath.Join(dir, "data")); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}
