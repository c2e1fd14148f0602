package localpostgres

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
	"golang.org/x/term"
)

const version = embeddedpostgres.V18

// binaries returns the folder of initdb and postgres, which are downloaded from Maven Central at the first use on
// this machine. Concurrent processes do the work twice; the first to rename wins.
func binaries(ctx context.Context, who identity, progress func(string)) (string, error) {
	cache, err := cacheDir(who)
	if err != nil {
		return "", fmt.Errorf("find cache folder (XDG_CACHE_HOME names another): %w", err)
	}
	ready := filepath.Join(cache, "postgres-"+string(version))
	if _, err := os.Stat(ready); err == nil {
		return filepath.Join(ready, "bin"), nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", fmt.Errorf("make cache folder (XDG_CACHE_HOME names another): %w", err)
	}
	clearAbandoned(cache)
	progress("fetching PostgreSQL " + string(version) + " (15 MB, only once) into " + cache)
	half, err := os.MkdirTemp(cache, "fetching-")
	if err != nil {
		return "", fmt.Errorf("make cache folder (XDG_CACHE_HOME names another): %w", err)
	}
	fetched := make(chan error, 1)
	go func() {
		defer func() { _ = os.RemoveAll(half) }()
		fetched <- fetch(half, ready)
	}()
	select {
	case err := <-fetched:
		return filepath.Join(ready, "bin"), err
	case <-ctx.Done(): // the library cannot be interrupted; its download is ready for the next start
		return "", ctx.Err()
	}
}

// fetch lets the library download, verify and unpack. The library does this only as the first steps of Start, which
// then would run the server in unsuitable ways: never as root, and surviving this process. So it gets a data folder
// with nothing in it but a version, on which no server starts.
func fetch(half, ready string) error {
	data, unpacked := filepath.Join(half, "data"), filepath.Join(half, "unpacked")
	if err := os.Mkdir(data, 0o700); err != nil {
		return fmt.Errorf("prepare fetching PostgreSQL: %w", err)
	}
	if err := os.WriteFile(filepath.Join(data, "PG_VERSION"), []byte("18\n"), 0o600); err != nil {
		return fmt.Errorf("prepare fetching PostgreSQL: %w", err)
	}
	config := embeddedpostgres.DefaultConfig().
		Version(version).Port(0).Logger(io.Discard).DataPath(data).
		CachePath(filepath.Join(half, "archive")).
		RuntimePath(filepath.Join(half, "run")).
		BinariesPath(unpacked)
	startErr := fetching(config)
	http.DefaultClient.CloseIdleConnections() // otherwise its goroutines stay
	if _, err := os.Stat(filepath.Join(unpacked, "bin", "postgres")); err != nil {
		return fmt.Errorf("fetch PostgreSQL (or set DATABASE_URL to a server of yours): %w", startErr)
	}
	return keep(unpacked, ready)
}

// fetching shows a progress bar on a terminal.
func fetching(config embeddedpostgres.Config) error {
	if !term.IsTerminal(int(os.Stderr.Fd())) { //nolint:gosec // a file descriptor
		return embeddedpostgres.NewDatabase(config).Start()
	}
	m, err := startMirror(repository, os.Stderr)
	if err != nil {
		return err
	}
	err = embeddedpostgres.NewDatabase(config.BinaryRepositoryURL(m.at)).Start()
	if away := m.stop(); away != nil {
		return away
	}
	return err
}

// keep moves a whole unpacked PostgreSQL into place, or leaves the one that another process put there.
func keep(unpacked, ready string) error {
	if err := os.Chmod(unpacked, 0o755); err != nil {
		return fmt.Errorf("keep PostgreSQL: %w", err)
	}
	if err := os.Rename(unpacked, ready); err != nil {
		if _, there := os.Stat(filepath.Join(ready, "bin", "postgres")); there == nil {
			return nil
		}
		return fmt.Errorf("keep PostgreSQL: %w", err)
	}
	return nil
}

// cacheDir returns the user's cache folder, or the machine's if another user must run what root downloads.
func cacheDir(who identity) (string, error) {
	if who.uid != os.Geteuid() && who.attr != nil {
		return "/var/cache/jobweaver", nil
	}
	dir, err := os.UserCacheDir()
	return filepath.Join(dir, "jobweaver"), err
}

// clearAbandoned removes the files of killed downloads.
func clearAbandoned(cache string) {
	abandoned, _ := filepath.Glob(filepath.Join(cache, "fetching-*"))
	for _, dir := range abandoned {
		if info, err := os.Stat(dir); err == nil && time.Since(info.ModTime()) > time.Hour {
			_ = os.RemoveAll(dir)
		}
	}
}
