package handlers_test

import "syscall"

// mountSmall mounts a disk of 1 MiB; only root can do that.
func mountSmall(folder string) error { return syscall.Mount("tmpfs", folder, "tmpfs", 0, "size=1m") }

func unmount(folder string) error { return syscall.Unmount(folder, 0) }
