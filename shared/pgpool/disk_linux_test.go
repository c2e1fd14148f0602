package pgpool_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/infra/laptop/localpostgres"
	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/testwait"
)

// A temporary file is enough to see the full disk; the database has no WAL to write while it is idle.
func TestTheProbeSeesAFullDiskAndItsEnd(t *testing.T) {
	t.Parallel()
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=300m,mode=0755"); err != nil {
		t.Skipf("cannot mount a small disk here: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(disk, 0) })
	server, err := localpostgres.Start(t.Context(), localpostgres.Config{Dir: filepath.Join(disk, "pg"), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	pool := open(t, server.URL())
	until := func(sentence string) {
		t.Helper()
		began := time.Now()
		testwait.Until(t, sentence, func() bool {
			err := pgpool.Writable(t.Context(), pool)
			return pgpool.Outage(err) == sentence && (err != nil) == (sentence != "")
		})
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("%q only after %s", sentence, took)
		}
	}
	until("")
	fill(t, filepath.Join(disk, "filler"))
	until("the disk of the database is full")
	if err := os.Remove(filepath.Join(disk, "filler")); err != nil {
		t.Fatal(err)
	}
	until("")
}

// fill leaves no space on a disk.
func fill(t *testing.T, path string) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	for size := 1 << 20; size >= 1<<10; size /= 2 {
		for piece := make([]byte, size); err == nil; {
			_, err = file.Write(piece)
		}
		err = nil
	}
}
