package installation

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/jobweaver/jobweaver/local/suites/chaos/clock"
)

// Build builds every function but relay into dir, or jobweaver serve, with a wall clock that can be stepped, and
// returns their names. It builds the pull worker as well.
func Build(dir string, paired bool) (names []string, err error) {
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return nil, fmt.Errorf("find the module: %w", err)
	}
	module := strings.TrimSpace(string(root))
	commands, _ := filepath.Glob(filepath.Join(module, "functions", "*", "cmd"))
	if paired {
		commands = []string{filepath.Join(module, "local", "jobweaver")}
	}
	overlay, err := overlay()
	if err != nil {
		return nil, err
	}
	var builds errgroup.Group
	builds.SetLimit(2)
	build := func(name, source string) {
		builds.Go(func() error {
			cmd := exec.Command("go", "build", "-overlay", overlay, "-o", filepath.Join(dir, name), ".")
			cmd.Dir, cmd.Env = source, append(os.Environ(), "CGO_ENABLED=0")
			if out, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("build %s: %w\n%s", name, err, out)
			}
			return nil
		})
	}
	build(Puller, filepath.Join(module, "local", "suites", "chaos", Puller))
	for _, source := range commands {
		name := filepath.Base(filepath.Dir(source))
		if paired {
			name = serve
		}
		if name == "relay" { // it needs the database of an outbox, as the kill suite has
			continue
		}
		names = append(names, name)
		build(name, source)
	}
	return names, builds.Wait()
}

// overlay writes the overlay where the next run finds it: in another folder Go would build everything again.
func overlay() (file string, err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find cache folder: %w", err)
	}
	dir := filepath.Join(cache, "jobweaver", "chaos-clock")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("make cache folder: %w", err)
	}
	return clock.Overlay(dir)
}
