// Package clock gives other processes clocks that can be stepped while they run: Go programs, which are built with
// another time.Now, and C programs, by an LD_PRELOAD library that can also slow down their fsync.
package clock

import (
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Env names the control file to a process.
const Env = "CHAOS_CLOCK"

//go:embed now.go.txt
var nowGo []byte

//go:embed shim.c.txt
var shimC []byte

// Control is a file that controls the clocks of one or more processes.
type Control struct{ file *os.File }

// NewControl makes a control file that changes nothing yet.
func NewControl(path string) (*Control, error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("make clock control: %w", err)
	}
	if err := errors.Join(file.Truncate(4096), file.Chmod(0o644)); err != nil {
		return nil, fmt.Errorf("make clock control: %w", errors.Join(err, file.Close()))
	}
	return &Control{file}, nil
}

// Path returns the value for Env.
func (c *Control) Path() string { return c.file.Name() }

// Step sets the offset of the wall clock.
func (c *Control) Step(by time.Duration) error { return c.write(8, int64(by)) }

// SlowSync delays each fsync and fdatasync.
func (c *Control) SlowSync(by time.Duration) error { return c.write(0, by.Microseconds()) }

// Close closes the file; processes keep their mapping of it.
func (c *Control) Close() error { return c.file.Close() }

func (c *Control) write(at, value int64) error {
	var word [8]byte
	binary.NativeEndian.PutUint64(word[:], uint64(value))
	if _, err := c.file.WriteAt(word[:], at); err != nil {
		return fmt.Errorf("write clock control: %w", err)
	}
	return nil
}

// Shim compiles the LD_PRELOAD library into dir.
func Shim(dir string) (library string, err error) {
	source, library := filepath.Join(dir, "shim.c"), filepath.Join(dir, "shim.so")
	if err := os.WriteFile(source, shimC, 0o600); err != nil {
		return "", fmt.Errorf("write shim: %w", err)
	}
	out, err := exec.Command("cc", "-O2", "-Wall", "-shared", "-fPIC", "-o", library, source).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("compile shim: %w\n%s", err, out)
	}
	return library, os.Chmod(library, 0o755)
}

// The beginning of time.Now, and its replacement in our builds.
const (
	nowBefore = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	nowAfter  = nowBefore + "\tsec, nsec = stepped(sec, nsec)\n"
)

// Overlay writes into dir the files for go build -overlay of programs whose wall clock can be stepped. Their
// monotonic clock is not affected, as after a step of a machine's clock.
func Overlay(dir string) (file string, err error) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("overlay clock: find Go: %w", err)
	}
	folder := filepath.Join(strings.TrimSpace(string(root)), "src", "time")
	original := filepath.Join(folder, "time.go")
	text, err := os.ReadFile(original)
	if err != nil {
		return "", fmt.Errorf("overlay clock: %w", err)
	}
	changed := strings.Replace(string(text), nowBefore, nowAfter, 1)
	if changed == string(text) {
		return "", fmt.Errorf("overlay clock: time.Now in %s does not begin with what we know", original)
	}
	ours, added := filepath.Join(dir, "time.go"), filepath.Join(dir, "now.go")
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{
		original: ours, filepath.Join(folder, "now_stepped.go"): added,
	}})
	if err != nil {
		return "", fmt.Errorf("overlay clock: %w", err)
	}
	file = filepath.Join(dir, "overlay.json")
	return file, errors.Join(os.WriteFile(ours, []byte(changed), 0o600), os.WriteFile(added, nowGo, 0o600),
		os.WriteFile(file, replace, 0o600))
}
