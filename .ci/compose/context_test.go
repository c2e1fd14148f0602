package compose_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
)

// The builder gets only the files that .dockerignore does not exclude. Without this test only a build with Docker shows
// that one is missing.
func TestTheBuilderIsSentAllThatTheImageIsMadeOfAndNoSecret(t *testing.T) {
	t.Parallel()
	patterns, err := ignorefile.ReadAll(bufio.NewReader(strings.NewReader(read(t, ".dockerignore"))))
	if err != nil {
		t.Fatal(err)
	}
	ignored := func(path string) bool {
		yes, err := patternmatcher.MatchesOrParentMatches(path, patterns)
		if err != nil {
			t.Fatal(err)
		}
		return yes
	}
	for _, path := range append(sources(t), "go.mod", "go.sum", "infra/image-root") {
		if ignored(path) {
			t.Errorf("%s is not sent", path)
		}
	}
	for _, path := range []string{".env", ".git/HEAD", ".jobweaver/admin.key", "bin/gateway", "local/x_test.go", "README.md",
		"functions/gateway/dashboard/node_modules/vite/package.json", "functions/gateway/dashboard/package.json"} {
		if !ignored(path) {
			t.Errorf("%s is sent", path)
		}
	}
}

// sources are the files of our own packages that the image is compiled from, and what they embed.
func sources(t *testing.T) []string {
	t.Helper()
	module, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-tags=nomsgpack,nodev",
		"-json=Dir,GoFiles,EmbedFiles,Standard,Module", "./local/jobweaver")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			Dir                 string
			GoFiles, EmbedFiles []string
		}
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if folder, err := filepath.Rel(module, p.Dir); err == nil && filepath.IsLocal(folder) {
			for _, file := range slices.Concat(p.GoFiles, p.EmbedFiles) {
				files = append(files, filepath.Join(folder, file))
			}
		}
	}
	if !slices.Contains(files, "functions/gateway/openapi.yaml") {
		t.Fatalf("%d files, and the contract is none of them", len(files))
	}
	return files
}

func TestKoBuildsAsTheDockerfileDoes(t *testing.T) {
	t.Parallel()
	ko, script := read(t, ".ko.yaml"), read(t, "infra/image-root")
	for _, setting := range []string{
		"CGO_ENABLED=0", "-trimpath", "nomsgpack,nodev", "-s", "-w", "github.com/jobweaver/jobweaver/shared/funchost",
		".Version=", ".Commit=", ".Date=", "./local/jobweaver",
	} {
		if !strings.Contains(ko, setting) || !strings.Contains(script, setting) {
			t.Errorf("%s is not in both", setting)
		}
	}
	if !strings.Contains(ko, ":nonroot\n") {
		t.Error("ko's image runs as root")
	}
}
