package localkafka

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

//go:embed pom.xml
var pom []byte

// Jars returns the folder with Apache Kafka's jars, which Maven downloads at the first use on this machine.
// Concurrent processes do the work twice; the first to rename wins.
func Jars(ctx context.Context, progress func(string)) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find cache folder (XDG_CACHE_HOME names another): %w", err)
	}
	cache = filepath.Join(cache, "jobweaver")
	hash := sha256.Sum256(pom)
	ready := filepath.Join(cache, fmt.Sprintf("kafka-%x", hash[:6]))
	if _, err := os.Stat(ready); err == nil {
		return ready, nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", fmt.Errorf("make cache folder (XDG_CACHE_HOME names another): %w", err)
	}
	progress("fetching Apache Kafka (43 MB, only once) into " + cache)
	half, err := os.MkdirTemp(cache, "fetching-")
	if err != nil {
		return "", fmt.Errorf("make cache folder (XDG_CACHE_HOME names another): %w", err)
	}
	defer func() { _ = os.RemoveAll(half) }()
	return ready, fetch(ctx, half, ready)
}

func fetch(ctx context.Context, half, ready string) error {
	project, libs := filepath.Join(half, "pom.xml"), filepath.Join(half, "libs")
	if err := os.WriteFile(project, pom, 0o600); err != nil {
		return fmt.Errorf("write pom: %w", err)
	}
	cmd := exec.CommandContext(ctx, "mvn", "-q", "-B", "-f", project, "dependency:copy-dependencies",
		"-DoutputDirectory="+libs)
	stop := showElapsed()
	out, err := cmd.CombinedOutput()
	stop()
	if err != nil {
		return fmt.Errorf("fetch its jars with Maven: %w\n%s", err, out)
	}
	if err := os.Rename(libs, ready); err != nil {
		if _, there := os.Stat(ready); there != nil {
			return fmt.Errorf("keep jars: %w", err)
		}
	}
	return nil
}

// showElapsed shows on a terminal that Maven is running, and for how long, until it is stopped. Maven does not report
// its progress.
func showElapsed() (stop func()) {
	if !term.IsTerminal(int(os.Stderr.Fd())) { //nolint:gosec // a file descriptor
		return func() {}
	}
	bar := progressbar.NewOptions(-1, progressbar.OptionSetWriter(os.Stderr),
		progressbar.OptionSetDescription("Maven works"), progressbar.OptionSpinnerType(14),
		progressbar.OptionSetElapsedTime(true), progressbar.OptionClearOnFinish())
	tick, done, ended := time.NewTicker(200*time.Millisecond), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-tick.C:
				_ = bar.Add(1)
			case <-done:
				tick.Stop()
				_ = bar.Finish()
				return
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}
