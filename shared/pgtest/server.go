package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/jobweaver/jobweaver/infra/laptop/localpostgres"
)

// own is the server that this process started because it was given none.
var own struct {
	sync.Mutex
	*TempServer
}

// serverURL returns PGTEST_URL, or the address of a server that was started for this process. That server ends
// with the process; Main or the next run removes its folder.
func serverURL() (string, error) {
	if url := os.Getenv("PGTEST_URL"); url != "" {
		return url, nil
	}
	own.Lock()
	defer own.Unlock()
	if own.TempServer == nil {
		s, err := StartServer(context.Background())
		if err != nil {
			return "", err
		}
		own.TempServer = s
	}
	return own.URL(), nil
}

// Main is a TestMain that stops the server of this process, if it started one, and fails when the
// tests have left a goroutine behind.
func Main(m *testing.M, options ...goleak.Option) {
	code := m.Run()
	if err := StopServer(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	if code == 0 {
		if err := goleak.Find(options...); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// StopServer ends the connections that this process keeps, and stops its server if a test has started one: for a
// TestMain that cannot use Main.
func StopServer() error {
	err := closeIdle()
	if own.TempServer == nil {
		return err
	}
	return errors.Join(err, own.Stop())
}

// TempServer is a PostgreSQL without any durability in a temporary folder.
type TempServer struct {
	*localpostgres.Server
	dir string
}

const folders = "jobweaver-pgtest-"

// StartServer starts a server that lives no longer than this process.
func StartServer(ctx context.Context) (*TempServer, error) {
	// Processes that ended without Main, or were killed, have left their folders.
	old, _ := filepath.Glob(filepath.Join(os.TempDir(), folders+"*"))
	for _, dir := range old {
		if err := localpostgres.RemoveAbandoned(ctx, dir); err != nil {
			return nil, fmt.Errorf("clear an old test server: %w", err)
		}
	}
	dir, err := os.MkdirTemp("", folders)
	if err != nil {
		return nil, fmt.Errorf("start test server: %w", err)
	}
	s, err := localpostgres.Start(ctx, localpostgres.Config{
		Dir:      dir,
		NoSync:   true,
		Settings: map[string]string{"max_connections": "500"}, // the packages of a test run have had 200 together
		Progress: func(line string) { fmt.Fprintln(os.Stderr, line) },
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start test server: %w", err), os.RemoveAll(dir))
	}
	return &TempServer{Server: s, dir: dir}, nil
}

// Stop ends the server and removes its folder.
func (s *TempServer) Stop() error {
	return errors.Join(s.Server.Stop(), os.RemoveAll(s.dir))
}
