package initcmd_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jobweaver/jobweaver/local/jobweaver/initcmd"
)

func initialized(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := initcmd.New()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(args)
	err := cmd.Execute()
	return out.String(), err
}

func TestAProjectIsWrittenIntoANewFolder(t *testing.T) {
	t.Parallel()
	for kind, files := range map[string][]string{
		"go":     {"go.mod", "main.go"},
		"ts":     {"package.json", "src/submit.ts", "src/tasks.ts", "src/worker.ts", "tsconfig.json"},
		"python": {"requirements.txt", "submit.py", "tasks.py", "worker.py"},
		"http":   {"function.py", "submit.sh"},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			folder := filepath.Join(t.TempDir(), "My shop")
			out, err := initialized(t, kind, folder)
			if err != nil || !strings.Contains(out, folder) {
				t.Fatalf("%q, %v", out, err)
			}
			var found []string
			if err := fs.WalkDir(os.DirFS(folder), ".", func(name string, entry fs.DirEntry, err error) error {
				if !entry.IsDir() {
					found = append(found, name)
				}
				return err
			}); err != nil {
				t.Fatal(err)
			}
			if slices.Sort(found); !slices.Equal(found, files) {
				t.Errorf("it has %q, not %q", found, files)
			}
			if kind == "go" {
				if text, err := os.ReadFile(filepath.Join(folder, "go.mod")); err != nil || !strings.HasPrefix(string(text), "module example.org/my-shop\n") {
					t.Errorf("go.mod is %s, %v", text, err)
				}
			}
			if _, err := initialized(t, kind, folder); err == nil || !strings.Contains(err.Error(), "is not empty") {
				t.Errorf("a folder with a project: %v", err)
			}
		})
	}
}

func TestAnUnknownKindOfProjectIsRefused(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "new")
	if _, err := initialized(t, "rust", folder); err == nil || !strings.Contains(err.Error(), `"rust" is none of go, http, python, ts`) {
		t.Error(err)
	}
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Error(err)
	}
}
