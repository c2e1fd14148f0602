// Package localpostgres runs a real PostgreSQL on this machine, for development and for tests. The server is a direct
// child of this process, listens on loopback only, and also works for root.
package localpostgres

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/jobweaver/jobweaver/infra/laptop/folderlock"
)

// Config describes a server's data folder and how it is reached.
type Config struct {
	Dir      string            // data, password and log, which the next Start finds again
	Port     int               // on 127.0.0.1; 0 takes a free one
	NoSync   bool              // commits need not survive a crash of the machine: for tests only
	Settings map[string]string // further server settings, which override the defaults
	Env      []string          // further environment of the server
	Progress func(line string) // called before slow first steps; may be nil
}

// Server is a running PostgreSQL.
type Server struct {
	cfg      Config
	bin      string // folder of initdb and postgres
	who      identity
	password string // like port, set by the first start only
	port     int

	mu    sync.Mutex
	lock  *folderlock.Lock // held while this process owns Dir
	cmd   *exec.Cmd
	ended <-chan struct{}

	logged int64 // bytes of the log at the launch
}

// Start starts the server of cfg.Dir, and initializes it at its first start. The context bounds only the start. A
// server that a killed process left on Dir is stopped first; a Dir that a living process uses is an error.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("resolve folder: %w", err)
	}
	cfg.Dir = dir
	if cfg.Progress == nil {
		cfg.Progress = func(string) {}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make folder: %w", err)
	}
	who := chooseIdentity()
	bin, err := binaries(ctx, who, cfg.Progress)
	if err != nil {
		return nil, err
	}
	return start(ctx, cfg, bin, who)
}

func start(ctx context.Context, cfg Config, bin string, who identity) (*Server, error) {
	s := &Server{cfg: cfg, bin: bin, who: who, port: cfg.Port}
	if err := s.Restart(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// Password returns a password for a role of this server that has no other. It is derived from the superuser's, so it
// stays the same over restarts and is not stored.
func (s *Server) Password(role string) string {
	mac := hmac.New(sha256.New, []byte(s.password))
	mac.Write([]byte(role))
	return hex.EncodeToString(mac.Sum(nil))
}

// URL returns the address of the database "postgres" as its superuser. It stays the same over Restart.
func (s *Server) URL() string {
	return fmt.Sprintf("postgres://%s:%s@127.0.0.1:%d/postgres?sslmode=disable", superuser, s.password, s.port)
}

// Stop stops the server cleanly: it ends sessions, writes all data, and releases the folder.
func (s *Server) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.halt()
	if s.lock != nil {
		err = errors.Join(err, s.lock.Close())
		s.lock = nil
	}
	return err
}

// Kill ends the server and all its processes by SIGKILL, as a crash would.
func (s *Server) Kill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.running() {
		return nil
	}
	pid := s.cmd.Process.Pid
	// A stopped postmaster starts no backend that the list would lack. Such a backend can wait for ever for a lock that a
	// killed one held, and the server does not start again as long as it lives.
	if err := s.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return fmt.Errorf("stop PostgreSQL: %w", err)
	}
	workers := children(pid)
	// The postmaster is killed first, otherwise it would restart the others.
	if err := s.cmd.Process.Kill(); err != nil {
		return fmt.Errorf("kill PostgreSQL: %w", err)
	}
	for _, w := range workers {
		_ = syscall.Kill(w, syscall.SIGKILL)
	}
	<-s.ended
	return nil
}

// Restart starts the server again on the same port and data, after stopping it if it runs.
func (s *Server) Restart(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.halt(); err != nil {
		return err
	}
	if s.lock == nil {
		lock, err := folderlock.Take(s.cfg.Dir)
		if err != nil {
			return err
		}
		s.lock = lock
	}
	err := s.bringUp(ctx)
	if err != nil {
		_ = s.lock.Close()
		s.lock = nil
	}
	return err
}

func (s *Server) bringUp(ctx context.Context) error {
	if err := stopLeftover(ctx, s.dataDir()); err != nil {
		return err
	}
	if err := s.initialize(ctx); err != nil {
		return err
	}
	return s.launch(ctx)
}

func (s *Server) dataDir() string { return filepath.Join(s.cfg.Dir, "data") }

func (s *Server) running() bool {
	if s.cmd == nil {
		return false
	}
	select {
	case <-s.ended:
		return false
	default:
		return true
	}
}

// halt tries harder and harder shutdowns: fast, immediate, SIGKILL.
func (s *Server) halt() error {
	if !s.running() {
		return nil
	}
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGKILL} {
		if err := s.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("stop PostgreSQL: %w", err)
		}
		select {
		case <-s.ended:
			return nil
		case <-time.After(20 * time.Second):
		}
	}
	return errors.New("PostgreSQL does not stop")
}
