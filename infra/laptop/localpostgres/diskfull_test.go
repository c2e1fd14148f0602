package localpostgres

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAFullDiskIsReadFromTheLogOfThisLaunch(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	log := filepath.Join(dir, logName)
	full := "PANIC:  could not write to file \"pg_wal/xlogtemp.23\": No space left on device\n"
	if err := os.WriteFile(log, []byte(full), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &Server{cfg: Config{Dir: dir}, logged: int64(len(full))}
	if s.DiskFull() {
		t.Error("the disk of the launch before counts")
	}
	later := full + full + strings.Repeat("LOG:  database system is ready to accept connections\n", 100)
	if err := os.WriteFile(log, []byte(later), 0o600); err != nil {
		t.Fatal(err)
	}
	if !s.DiskFull() {
		t.Error("the line is not found")
	}
	if (&Server{cfg: Config{Dir: t.TempDir()}}).DiskFull() {
		t.Error("a disk is full of a server without a log")
	}
}
