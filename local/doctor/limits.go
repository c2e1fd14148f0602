package doctor

import (
	"syscall"
	"time"
)

const gigabyte = 1 << 30

// limits are the values from which something is a finding.
type limits struct {
	clocks   time.Duration // between two machines: signatures, tokens and certificates soon fail beyond it
	postgres int           // the oldest version on which the schema works
	crowded  int           // connections in use, in percent: more processes may not get theirs
	free     uint64        // of a disk, in percent
	kept     int64         // bytes of WAL that a replication slot holds
	open     time.Duration // of a transaction: meanwhile no dead row goes, and dispatch becomes slower
	dead     int           // rows of a table, from which on autovacuum should have begun whatever its size
	age      int           // of transactions, far beyond the one at which autovacuum begins by force
	expires  time.Duration // of a certificate, before its end

	statfs func(dir string) (free, size uint64, err error)
}

var usual = limits{
	clocks: 2 * time.Second, postgres: 15, crowded: 80, free: 15, kept: 4 * gigabyte, open: 10 * time.Minute,
	dead: 1_000_000, age: 1_000_000_000, expires: 14 * 24 * time.Hour, statfs: statfs,
}

func statfs(dir string) (free, size uint64, err error) {
	var disk syscall.Statfs_t
	err = syscall.Statfs(dir, &disk)
	block := uint64(disk.Bsize) //nolint:gosec // its type differs between systems
	return disk.Bavail * block, disk.Blocks * block, err
}
