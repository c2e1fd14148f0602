// Package folderlock keeps two processes from running a server on the same data.
package folderlock

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// Name of the file in the folder that carries the lock.
const Name = "lock"

// Lock holds a folder.
type Lock struct{ file *os.File }

// Take takes dir for this process until Close. The kernel lets go of it whenever and however we end.
func Take(dir string) (*Lock, error) {
	file, err := os.OpenFile(filepath.Join(dir, Name), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("take %s: another process uses it: %w", dir, err)
	}
	return &Lock{file}, nil
}

// Close lets go of the folder. To close the file would not do: a child that another goroutine is just
// starting has a copy of it until it runs its own program, and the lock ends with the last copy.
func (l *Lock) Close() error {
	return errors.Join(syscall.Flock(int(l.file.Fd()), syscall.LOCK_UN), l.file.Close())
}
