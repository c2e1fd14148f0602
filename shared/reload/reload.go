// Package reload keeps a value that is parsed from files (certificates, keys) and reads it again when they change, so
// that a process need not restart when they are renewed.
package reload

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// pause is the shortest time between two checks of the files.
	pause = time.Second
	// young is how old a file's last change must be so that the next one surely has another time.
	young = 2 * time.Second
)

// Files is a value that is parsed from one or several files. Get checks their size, time and identity, at most once a
// second. So it notices a file that was written in place, replaced by a rename, or switched by Kubernetes' symbolic
// links. While new files cannot be read or parsed, the old value stays.
type Files[T any] struct {
	what   string
	paths  []string
	parse  func(texts [][]byte) (T, error)
	logger func() *slog.Logger

	value  atomic.Pointer[T]
	looked atomic.Int64 // nanoseconds since start

	mu     sync.Mutex // held by the goroutine that checks the files
	seen   []file
	broken string // the error that was logged; empty: none
}

type file struct {
	info os.FileInfo
	text []byte
	at   time.Time // when it was read
}

var start = time.Now()

// New reads the files at paths for the first time. what is the name of their setting or settings, for errors and the
// log. parse gets the texts in the order of the paths and may be called again as long as the process lives, by one
// goroutine at a time. Its errors are logged and must not repeat secrets.
func New[T any](what string, parse func(texts [][]byte) (T, error), paths ...string) (*Files[T], error) {
	f := &Files[T]{what: what, paths: paths, parse: parse, logger: slog.Default, seen: make([]file, len(paths))}
	f.looked.Store(int64(time.Since(start)))
	if _, err := f.read(); err != nil {
		return nil, err
	}
	return f, nil
}

// Get returns the value of the newest files that could be parsed. It blocks only the goroutine that checks the files.
func (f *Files[T]) Get() T {
	now, looked := int64(time.Since(start)), f.looked.Load()
	if now-looked >= int64(pause) && f.looked.CompareAndSwap(looked, now) {
		f.look()
	}
	return *f.value.Load()
}

// look reads changed files, and logs each new error once.
func (f *Files[T]) look() {
	f.mu.Lock()
	defer f.mu.Unlock()
	changed, err := f.read()
	switch {
	case err != nil && err.Error() != f.broken:
		f.broken = err.Error()
		f.logger().Warn("changed file is not usable, the old one stays in use", "error", err)
	case err == nil && (changed || f.broken != ""):
		f.broken = ""
		f.logger().Info("changed file is in use from now on", "setting", f.what)
	}
}

// read parses the files if one of them has changed since they were last parsed.
func (f *Files[T]) read() (changed bool, err error) {
	now := make([]file, len(f.paths))
	texts := make([][]byte, len(f.paths))
	for i, path := range f.paths {
		if now[i], err = f.seen[i].again(path); err != nil {
			return false, fmt.Errorf("%s: %w", f.what, err)
		}
		texts[i] = now[i].text
		changed = changed || f.seen[i].info == nil || !bytes.Equal(texts[i], f.seen[i].text)
	}
	if changed || f.value.Load() == nil {
		value, err := f.parse(texts)
		if err != nil {
			return false, fmt.Errorf("%s: %w", f.what, err)
		}
		f.value.Store(&value)
	}
	f.seen = now
	return changed, nil
}

// again reads the file unless it is the one that was seen. It takes the file's time before it reads it: after a change
// in between the file has another time than the one that is kept, so the next check reads it again.
func (s file) again(path string) (file, error) {
	at := time.Now()
	info, err := os.Stat(path)
	if err != nil {
		return file{}, err
	}
	if s.info != nil && os.SameFile(info, s.info) && info.Size() == s.info.Size() &&
		info.ModTime().Equal(s.info.ModTime()) && s.at.Sub(info.ModTime()) > young {
		return s, nil
	}
	text, err := os.ReadFile(path)
	return file{info: info, text: text, at: at}, err
}
