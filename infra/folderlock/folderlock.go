// Package folderlock keeps two processes from running a server on the same data.
package folderlock

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// Name of the file in the folder that carries the lock.
const Name = "lock"

// Take takes dir for this process until the file is closed. The kernel lets go of it whenever and
// however we end.
func Take(dir string) (*os.File, error) {
	lock, err := os.OpenFile(filepath.Join(dir, Name), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = lock.Close()
		return nil, fmt.Errorf("take %s: another process uses it: %w", dir, err)
	}
	return lock, nil
}
