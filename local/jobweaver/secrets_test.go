package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/apikey"
	"github.com/jobweaver/jobweaver/shared/webhook"
)

// runSecrets runs `jobweaver secrets` on a folder.
func runSecrets(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	cmd, out := newRoot(), &bytes.Buffer{}
	cmd.SetOut(out)
	cmd.SetArgs(append([]string{"secrets", "--dir", dir}, args...))
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

// filesOf returns the contents of the files in a folder by name.
func filesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		files[name] = strings.TrimSuffix(string(text), "\n")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// The secrets for docker compose were once in the repository.
func TestSecretsAreCreatedOnce(t *testing.T) {
	t.Parallel()
	dir, other := t.TempDir(), t.TempDir()
	printed, err := runSecrets(t, dir, "create")
	if err != nil {
		t.Fatal(err)
	}
	first := filesOf(t, dir)
	if len(first) != 9 {
		t.Fatalf("%d files", len(first))
	}
	for name, text := range first {
		if strings.Contains(printed, text) {
			t.Errorf("%s is printed", name)
		}
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != 0o444 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	if _, ok := apikey.Parse(first["admin/key"]); !ok {
		t.Error("admin/key is no API key")
	}
	for _, name := range []string{"webhook/secret", "callback/secret"} {
		if _, err := webhook.NewSigner([]string{first[name]}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	cfg, err := pgx.ParseConfig("postgres://u@host/db?passfile=" + filepath.Join(dir, "server", "pgpass"))
	if err != nil || cfg.Password != first["server/password"] || len(cfg.Password) < 20 {
		t.Errorf("with pgpass a client's password has %d bytes, %v", len(cfg.Password), err)
	}
	if shown, err := runSecrets(t, dir, "show", "admin/key"); err != nil || shown != first["admin/key"]+"\n" {
		t.Errorf("shown is %q, %v", shown, err)
	}

	if _, err := runSecrets(t, dir, "create"); err != nil {
		t.Fatal(err)
	}
	for name, text := range filesOf(t, dir) {
		if text != first[name] {
			t.Errorf("the second start made another %s", name)
		}
	}
	if _, err := runSecrets(t, other, "create"); err != nil {
		t.Fatal(err)
	}
	for name, text := range filesOf(t, other) {
		if text == first[name] {
			t.Errorf("another installation has the same %s", name)
		}
	}
}

func TestUnusableSecretPreventsTheStart(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"admin/key", "webhook/secret", "server/password"} {
		dir := t.TempDir()
		if _, err := runSecrets(t, dir, "create"); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, name)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := runSecrets(t, dir, "create"); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s is empty: %v", name, err)
		}
	}
	if _, err := runSecrets(t, t.TempDir(), "show", "../key"); err == nil || !strings.Contains(err.Error(), "admin/key, ") {
		t.Error(err)
	}
}
