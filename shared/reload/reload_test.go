package reload

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestAChangedFileIsSeenHoweverItChanges(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(t *testing.T, path, text string){
		"written into":                 write,
		"another renamed in its place": func(t *testing.T, path, text string) { write(t, path+".new", text); move(t, path+".new", path) },
		"of the same time and size": func(t *testing.T, path, text string) {
			info, err := os.Stat(path)
			must(t, err)
			write(t, path, text)
			must(t, os.Chtimes(path, info.ModTime(), info.ModTime()))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "a")
			write(t, path, "old")
			began := time.Now()
			f, _ := newFiles(t, path)
			change(t, path, "new")
			if got := f.Get(); got != "old" && time.Since(began) < pause {
				t.Errorf("%q at once", got)
			}
			if got := f.later(); got != "new" {
				t.Errorf("%q a second later", got)
			}
		})
	}
}

// Kubernetes mounts a/tls.crt as a link to ..data/tls.crt, and ..data as a link to a folder that it exchanges.
func TestFilesOfAKubernetesSecretAreSeenTogether(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	version := func(name, text string) {
		folder := filepath.Join(dir, name)
		must(t, os.Mkdir(folder, 0o700))
		write(t, filepath.Join(folder, "crt"), text)
		write(t, filepath.Join(folder, "key"), text)
		must(t, os.Symlink(name, filepath.Join(dir, "..tmp")))
		move(t, filepath.Join(dir, "..tmp"), filepath.Join(dir, "..data"))
	}
	version("1", "old")
	for _, name := range []string{"crt", "key"} {
		must(t, os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)))
	}
	f, _ := newFiles(t, filepath.Join(dir, "crt"), filepath.Join(dir, "key"))
	version("2", "new")
	if got := f.later(); got != "new+new" {
		t.Errorf("%q", got)
	}
}

func TestABrokenFileKeepsTheOldValueAndIsLoggedOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a")
	write(t, path, "old")
	f, log := newFiles(t, path)
	write(t, path, "broken")
	for range 3 {
		if got := f.later(); got != "old" {
			t.Errorf("%q while broken", got)
		}
	}
	must(t, os.Remove(path))
	for range 3 {
		if got := f.later(); got != "old" {
			t.Errorf("%q while away", got)
		}
	}
	write(t, path, "new")
	for range 3 {
		if got := f.later(); got != "new" {
			t.Errorf("%q once it is whole", got)
		}
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != 3 || !strings.Contains(lines[0], "A_FILE: it is broken") ||
		!strings.Contains(lines[1], "no such file") || !strings.Contains(lines[2], "in use") {
		t.Errorf("logged:\n%s", log)
	}
}

func TestAFileIsParsedOnlyWhenItsTextChanges(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a")
	write(t, path, "same")
	parsed := 0
	f, err := New("A_FILE", func([][]byte) (int, error) { parsed++; return parsed, nil }, path)
	must(t, err)
	for range 3 {
		write(t, path, "same")
		f.looked.Add(-int64(pause))
		f.Get()
	}
	if parsed != 1 {
		t.Errorf("parsed %d times", parsed)
	}
}

func TestTheFirstFileMustBeWhole(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a")
	if _, err := New("A_FILE", join, path); err == nil || !strings.HasPrefix(err.Error(), "A_FILE: ") {
		t.Errorf("missing: %v", err)
	}
	write(t, path, "broken")
	if _, err := New("A_FILE", join, path); err == nil || !strings.HasPrefix(err.Error(), "A_FILE: ") {
		t.Errorf("broken: %v", err)
	}
}

func TestManyMayAskWhileTheFileChanges(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a")
	write(t, path, "old")
	f, _ := newFiles(t, path)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 200 {
				if got := f.later(); got != "old" && got != "new" {
					t.Errorf("%q", got)
				}
			}
		})
	}
	write(t, path+".new", "new")
	move(t, path+".new", path)
	group.Wait()
	if got := f.later(); got != "new" {
		t.Errorf("%q in the end", got)
	}
}

type texts struct{ *Files[string] }

// later is Get as if the last check was a second ago.
func (f texts) later() string {
	f.looked.Store(int64(time.Since(start) - pause))
	return f.Get()
}

func newFiles(t *testing.T, paths ...string) (texts, *bytes.Buffer) {
	t.Helper()
	f, err := New("A_FILE", join, paths...)
	must(t, err)
	log := &bytes.Buffer{}
	logger := slog.New(slog.NewTextHandler(log, nil))
	f.logger = func() *slog.Logger { return logger }
	return texts{f}, log
}

func join(all [][]byte) (string, error) {
	text := string(bytes.Join(all, []byte("+")))
	if strings.Contains(text, "broken") {
		return "", errors.New("it is broken")
	}
	return text, nil
}

func write(t *testing.T, path, text string) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(text), 0o600))
}

func move(t *testing.T, from, to string) {
	t.Helper()
	must(t, os.Rename(from, to))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
