package kill

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"
)

// functions are all functions; the worker is the test's own, with one more job type.
var functions = func() (names []string) {
	folders, err := filepath.Glob("../../../functions/*/cmd")
	if err != nil {
		panic(err) // the pattern is sound
	}
	for _, folder := range folders {
		names = append(names, filepath.Base(filepath.Dir(folder)))
	}
	return names
}()

// binaries builds each program once for all tests, and returns their folder.
func binaries(t *testing.T) string {
	t.Helper()
	dir, err := buildAll()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

var buildAll = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "jobweaver-kill-bin-")
	if err != nil {
		return "", err
	}
	cleanups = append(cleanups, func() { _ = os.RemoveAll(dir) })
	sources := map[string]string{"broker": "./broker", "poller": "./poller"}
	for _, name := range functions {
		sources[name] = "../../../functions/" + name + "/cmd"
	}
	sources["runjob"] = "./worker"
	var builds errgroup.Group
	builds.SetLimit(runtime.GOMAXPROCS(0))
	for name, source := range sources {
		builds.Go(func() error { return buildOne(filepath.Join(dir, name), source, *racy && name != "broker") })
	}
	return dir, builds.Wait()
})

func buildOne(to, source string, race bool) error {
	args := []string{"build", "-o", to}
	if race {
		args = append(args, "-race")
	}
	if out, err := exec.Command("go", append(args, source)...).CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", filepath.Base(to), err, out)
	}
	return nil
}

// cleanups run after all tests.
var cleanups []func()

func TestMain(m *testing.M) {
	code := m.Run()
	for _, clean := range cleanups {
		clean()
	}
	http.DefaultClient.CloseIdleConnections()
	// sarama's metrics keep one goroutine for the life of the process.
	metrics := goleak.IgnoreTopFunction("github.com/rcrowley/go-metrics.(*meterArbiter).tick")
	if err := goleak.Find(metrics); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
