package upgrade

import (
	"bytes"
	_ "embed"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"github.com/jobweaver/jobweaver/infra/laptop/folderlock"
	"github.com/jobweaver/jobweaver/migrations"
)

var (
	wanted = flag.Bool("upgrade.run", false, "run these tests, which build all binaries twice")
	given  = flag.String("upgrade.bin", "", "a folder of binaries that were built before; missing ones are built into it")
	keep   = flag.Bool("upgrade.keep", false, "keep the logs after a success too")
)

//go:embed OLD_COMMIT
var oldCommit string

// older returns the line of OLD_COMMIT that is not a comment.
func older() string {
	for line := range strings.Lines(oldCommit) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			return line
		}
	}
	return ""
}

// functions returns the functions that are rolled: all but pull, since no job of this suite is for pull workers.
func functions() []string {
	return slices.DeleteFunc(all(), func(name string) bool { return name == "pull" })
}

// all returns the functions in the order of the rollout: consumers of events come before their publishers.
func all() []string {
	return slices.Concat(migrations.Worker.Functions, migrations.Scheduler.Functions, reversed(migrations.API.Functions))
}

func reversed(list []string) []string {
	list = slices.Clone(list)
	slices.Reverse(list)
	return list
}

// builds holds the folders with the binaries of the two versions.
type builds struct{ older, today string }

// built builds everything once for all tests.
func built(t *testing.T) builds {
	t.Helper()
	if !*wanted {
		t.Skip("builds all binaries twice: run it with make test-upgrade")
	}
	b, err := buildBoth()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

var buildBoth = sync.OnceValues(func() (b builds, err error) {
	source, err := sourceOf(older())
	if err != nil {
		return b, err
	}
	out := *given
	if out == "" {
		if out, err = os.MkdirTemp("", "jobweaver-upgrade-bin-"); err != nil {
			return b, err
		}
		cleanups = append(cleanups, func() { _ = os.RemoveAll(out) })
	}
	if out, err = filepath.Abs(out); err != nil {
		return b, err
	}
	b = builds{older: filepath.Join(out, "older"), today: filepath.Join(out, "today")}
	var builds errgroup.Group
	builds.SetLimit(runtime.GOMAXPROCS(0))
	for _, name := range all() {
		builds.Go(func() error { return goBuild("../../..", "./functions/"+name+"/cmd", filepath.Join(b.today, name)) })
		builds.Go(func() error { return goBuild(source, "./functions/"+name+"/cmd", filepath.Join(b.older, name)) })
	}
	builds.Go(func() error { return goBuild("../../..", "./local/jobweaver", filepath.Join(b.today, "jobweaver")) })
	builds.Go(func() error {
		return goBuild("../../..", "./local/suites/kill/broker", filepath.Join(b.today, "broker"))
	})
	builds.Go(func() error { return goBuild(source, "./local/jobweaver", filepath.Join(b.older, "jobweaver")) })
	return b, builds.Wait()
})

func goBuild(dir, what, to string) error {
	if _, err := os.Stat(to); err == nil {
		return nil
	}
	cmd := exec.Command("go", "build", "-ldflags=-s", "-o", to, what) //nolint:gosec // our own sources
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s in %s: %w\n%s", what, dir, err, out)
	}
	return nil
}

// sourceOf unpacks a commit from the history of this clone. The folder is always the same, so that Go finds it in its
// build cache.
func sourceOf(commit string) (dir string, err error) {
	if out, err := exec.Command("git", "cat-file", "-e", commit+"^{commit}").CombinedOutput(); err != nil {
		return "", fmt.Errorf("commit %s is not in this clone: a shallow one lacks history, get it by "+
			"git fetch --unshallow: %w\n%s", commit, err, out)
	}
	dir = filepath.Join(os.TempDir(), "jobweaver-upgrade-"+commit)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	lock, err := folderlock.Take(dir)
	if err != nil {
		return "", fmt.Errorf("another run is in %s: %w", dir, err)
	}
	cleanups = append(cleanups, func() { _ = lock.Close() })
	archive, err := exec.Command("git", "-C", "../../..", "archive", commit).Output()
	if err != nil {
		return "", fmt.Errorf("read commit %s: %w", commit, err)
	}
	dir = filepath.Join(dir, "source")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	unpack := exec.Command("tar", "-x", "-C", dir)
	unpack.Stdin = bytes.NewReader(archive)
	if out, err := unpack.CombinedOutput(); err != nil {
		return "", fmt.Errorf("unpack commit %s: %w\n%s", commit, err, out)
	}
	return dir, nil
}

var cleanups []func() // run after all tests

func TestMain(m *testing.M) {
	code := m.Run()
	for _, clean := range cleanups {
		clean()
	}
	http.DefaultClient.CloseIdleConnections()
	metrics := goleak.IgnoreTopFunction("github.com/rcrowley/go-metrics.(*meterArbiter).tick") // sarama's
	if err := goleak.Find(metrics); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
