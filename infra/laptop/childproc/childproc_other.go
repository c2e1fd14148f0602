//go:build !linux

package childproc

import "syscall"

// Other systems have no such signal: a server left behind is found at the next start.
func setDeathSignal(*syscall.SysProcAttr, syscall.Signal) {}
