package dev_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/jobweaver/jobweaver/infra/laptop/localpostgres"
)

// template is the folder of a PostgreSQL that has been initialized and is empty.
var template struct {
	sync.Mutex
	dir string
}

func TestMain(m *testing.M) {
	code := m.Run()
	if err := os.RemoveAll(template.dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// newFolder returns a folder for an installation, with a copy of the template: initdb takes half a second of processor
// time.
func newFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	postgres := filepath.Join(dir, "postgres")
	if err := os.CopyFS(postgres, os.DirFS(initialized(t))); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(postgres, "data"), 0o700); err != nil { // PostgreSQL insists on it
		t.Fatal(err)
	}
	return dir
}

func initialized(t *testing.T) string {
	t.Helper()
	template.Lock()
	defer template.Unlock()
	if template.dir != "" {
		return template.dir
	}
	dir, err := os.MkdirTemp("", "jobweaver-dev-test-")
	if err != nil {
		t.Fatal(err)
	}
	template.dir = dir
	server, err := localpostgres.Start(context.Background(), localpostgres.Config{Dir: dir})
	if err == nil {
		err = server.Stop()
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
