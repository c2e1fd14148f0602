package clock_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/local/suites/chaos/clock"
)

// A program that prints its wall clock, in nanoseconds, for each line that it reads.
const inGo = `package main

import (
	"bufio"
	"fmt"
	"os"
	"time"
)

func main() {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		fmt.Println(time.Now().UnixNano())
	}
}
`

const inC = `#include <stdio.h>
#include <sys/time.h>
#include <unistd.h>

int main(void) {
	char line[16];
	while (fgets(line, sizeof line, stdin)) {
		struct timeval now;
		fsync(1);
		gettimeofday(&now, NULL);
		printf("%lld\n", now.tv_sec * 1000000000LL + now.tv_usec * 1000LL);
		fflush(stdout);
	}
	return 0;
}
`

func TestTheClockOfAGoProgramIsSteppedWhileItRuns(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("compiles a part of Go's library anew")
	}
	dir := t.TempDir()
	overlay, err := clock.Overlay(dir)
	if err != nil {
		t.Fatal(err)
	}
	program := build(t, dir, "main.go", inGo, "go", "build", "-overlay", overlay)
	steps(t, program, nil)
}

func TestTheClockOfACProgramIsSteppedAndItsFsyncSlow(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("cc"); err != nil {
		t.Skip("needs a C compiler")
	}
	dir := t.TempDir()
	shim, err := clock.Shim(dir)
	if err != nil {
		t.Fatal(err)
	}
	program := build(t, dir, "main.c", inC, "cc")
	control := steps(t, program, []string{"LD_PRELOAD=" + shim})
	if err := control.SlowSync(200 * time.Millisecond); err != nil {
		t.Fatal(err)
	}
	ask, _ := run(t, program, control, []string{"LD_PRELOAD=" + shim})
	began := time.Now()
	ask()
	if took := time.Since(began); took < 200*time.Millisecond {
		t.Errorf("fsync took %s, it was to take 200 ms", took)
	}
}

func build(t *testing.T, dir, name, text string, compiler ...string) string {
	t.Helper()
	source, program := filepath.Join(dir, name), filepath.Join(dir, "program")
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	args := slices.Concat(compiler[1:], []string{"-o", program, source})
	if out, err := exec.Command(compiler[0], args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// steps compares the time that a program prints with this process's clock, before and after each step.
func steps(t *testing.T, program string, env []string) *clock.Control {
	t.Helper()
	control, err := clock.NewControl(filepath.Join(t.TempDir(), "control"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = control.Close() })
	ask, _ := run(t, program, control, env)
	for _, by := range []time.Duration{0, time.Hour, -time.Hour - 700*time.Millisecond, 20 * time.Second, 0} {
		if err := control.Step(by); err != nil {
			t.Fatal(err)
		}
		from := time.Now().Add(by).Truncate(time.Microsecond)
		if shown := ask(); shown.Before(from) || shown.After(time.Now().Add(by)) {
			t.Errorf("stepped by %s it returned %s, and it is %s", by, shown, time.Now())
		}
	}
	return control
}

// run starts a program, which ends with the test, and returns a function that asks it for the time.
func run(t *testing.T, program string, control *clock.Control, env []string) (ask func() time.Time, cmd *exec.Cmd) {
	t.Helper()
	cmd = exec.Command(program)
	cmd.Env = append(append(os.Environ(), clock.Env+"="+control.Path()), env...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	lines := bufio.NewReader(out)
	return func() time.Time {
		t.Helper()
		if _, err := io.WriteString(in, "\n"); err != nil {
			t.Fatal(err)
		}
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		nanoseconds, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return time.Unix(0, nanoseconds)
	}, cmd
}
