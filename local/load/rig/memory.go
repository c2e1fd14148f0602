package rig

import "syscall"

// tmpfs is Linux's magic number of a file system without a disk.
const tmpfs = 0x01021994

// InMemory reports whether a folder's files are in memory and not on a disk, so that syncing them would cost nothing.
func InMemory(dir string) bool {
	var stat syscall.Statfs_t
	return syscall.Statfs(dir, &stat) == nil && uint64(stat.Type) == tmpfs
}
