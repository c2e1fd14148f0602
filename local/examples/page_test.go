package examples

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

var write = flag.Bool("examples.write", false, "write the files into docs/functions.md, instead of comparing")

const page = "../../docs/functions.md"

// shown is a block of the page that shows a file, named in the comment above it.
var shown = regexp.MustCompile("(?s)(<!-- (local/examples/\\S+) -->\n```[a-z]*\n).*?```\n")

func TestThePageShowsTheFilesAsTheyAre(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	now := shown.ReplaceAllStringFunc(string(text), func(block string) string {
		parts := shown.FindStringSubmatch(block)
		path := filepath.Join("../..", parts[2])
		seen[path] = true
		file, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return parts[1] + string(file) + "```\n"
	})
	for _, pattern := range []string{"function-go/*.go", "function-python/*.py", "function-javascript/*.js", "worker-go/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v, %v", pattern, files, err)
		}
		for _, file := range files {
			if !seen[filepath.Join("../../local/examples", file)] {
				t.Errorf("the page does not show %s", file)
			}
		}
	}
	switch {
	case now == string(text):
	case *write:
		if err := os.WriteFile(page, []byte(now), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Error("the page shows other code than the files: go test ./local/examples -run Page -examples.write writes it anew")
	}
}
