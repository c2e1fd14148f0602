package localpostgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/infra/laptop/childproc"
	"github.com/jobweaver/jobweaver/infra/laptop/freeport"
	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/retry"
)

const logName = "postgres.log" // in the server's folder

// launchPatience is how long a start is retried while the resources of a killed server are released.
const launchPatience = 15 * time.Second

// maxFinal is how many tries may fail with an error that waiting does not change: for more than 2 s.
const maxFinal = 100

// launch starts postgres and waits until it answers. Right after a kill the old processes may still hold the shared
// memory, and a free port may be taken before the server uses it: both pass.
func (s *Server) launch(ctx context.Context) error {
	anyPort := s.port == 0
	passing := []string{"still in use", "already exists"}
	if anyPort || s.cmd != nil {
		passing = append(passing, "could not bind")
	}
	for deadline := time.Now().Add(launchPatience); ; {
		if anyPort {
			port, err := freeport.Pick()
			if err != nil {
				return err
			}
			s.port = port
		}
		err := s.launchOnce(ctx)
		if err == nil || !containsAny(err.Error(), passing) || time.Now().After(deadline) {
			return err
		}
		if !retry.Pause(ctx, 50*time.Millisecond) {
			return ctx.Err()
		}
	}
}

func containsAny(text string, parts []string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
}

func (s *Server) launchOnce(ctx context.Context) error {
	log, err := os.OpenFile(filepath.Join(s.cfg.Dir, logName), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	defer func() { _ = log.Close() }()
	info, err := log.Stat()
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	s.logged = info.Size()
	cmd := exec.Command(filepath.Join(s.bin, "postgres"), s.arguments()...)
	s.who.apply(cmd)
	cmd.Env = append(cmd.Env, s.cfg.Env...)
	cmd.Stdout, cmd.Stderr = log, log
	// SIGQUIT stops the server at once, as in a crash. The next start must not wait for a checkpoint.
	ended, err := childproc.Start(cmd, syscall.SIGQUIT)
	if err != nil {
		return fmt.Errorf("start postgres: %w", err)
	}
	s.cmd, s.ended = cmd, ended
	if err := s.awaitAnswer(ctx); err != nil {
		return errors.Join(fmt.Errorf("start PostgreSQL: %w%s", err, logFrom(log, info.Size())), s.halt())
	}
	return nil
}

// awaitAnswer waits for the first answered query, which may come only after a crash recovery. An error that waiting
// does not change may come from another server on the port for a moment: then this one ends.
func (s *Server) awaitAnswer(ctx context.Context) error {
	cfg, err := pgpool.ReadAddress(s.URL())
	if err != nil {
		return err
	}
	cfg.ValidateConnect = nil // a server that is read only answers, too
	for final := 0; ; {
		attempt, cancel := context.WithTimeout(ctx, 2*time.Second)
		conn, err := pgx.ConnectConfig(attempt, cfg)
		if err == nil {
			err = errors.Join(conn.Ping(attempt), conn.Close(attempt))
		}
		cancel()
		if !pgpool.MayPass(err) {
			final++
		}
		if err == nil || final > maxFinal {
			return err
		}
		select {
		case <-s.ended:
			return errors.New("it ended")
		case <-ctx.Done():
			return fmt.Errorf("%w (%w)", ctx.Err(), err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (s *Server) arguments() []string {
	settings := map[string]string{
		"port":                    strconv.Itoa(s.port),
		"listen_addresses":        "127.0.0.1",
		"unix_socket_directories": "", // their paths are limited to 107 bytes, and ours may be longer
		"max_connections":         "200",
		"shared_buffers":          "256MB",
		"TimeZone":                "UTC",
		"log_timezone":            "UTC",
		"log_checkpoints":         "off",
		"jit":                     "off", // statements are short: compiling them costs more than it saves
	}
	if s.cfg.NoSync {
		settings["fsync"] = "off"
		settings["synchronous_commit"] = "off"
		settings["full_page_writes"] = "off"
	}
	for name, value := range s.cfg.Settings {
		settings[name] = value
	}
	args := []string{"-D", s.dataDir()}
	for name, value := range settings {
		args = append(args, "-c", name+"="+value)
	}
	return args
}

// logFrom returns the log since offset, at most its last 2,000 bytes.
func logFrom(log *os.File, offset int64) string {
	info, err := log.Stat()
	if err != nil || info.Size() <= offset {
		return ""
	}
	text := make([]byte, min(info.Size()-offset, 2000))
	if _, err := log.ReadAt(text, info.Size()-int64(len(text))); err != nil {
		return ""
	}
	return "\n" + strings.TrimSpace(string(text))
}
