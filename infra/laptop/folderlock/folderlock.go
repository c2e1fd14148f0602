// Package folderlock keeps two processes from running a server on the same data.
package folderlock

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// Name is the name of the lock file in the folder.
const Name = "lock"

// Lock is a locked folder.
type Lock struct{ file *os.File }

// Take locks dir for this process until Close. The kernel releases the lock when the process ends, however it ends.
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

// Close releases the folder. Closing the file would not be enough: a child that another goroutine is just starting
// has a copy of it until it runs its own program, and the lock ends with the last copy.
func (l *Lock) Close() error {
	return errors.Join(syscall.Flock(int(l.file.Fd()), syscall.LOCK_UN), l.file.Close())
}
