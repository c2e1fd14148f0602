package examples

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const page = "../../docs/functions.md"

// excerpt matches a block of the page that quotes a part of a file, named in the comment above it.
var excerpt = regexp.MustCompile("(?s)<!-- (local/examples/\\S+) -->\n```[a-z]*\n(.*?)```\n")

// TestPageQuotesTheFilesAndLinksToThem checks that each excerpt is in its file, and that the page links to
// each file.
func TestPageQuotesTheFilesAndLinksToThem(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	excerpts := excerpt.FindAllStringSubmatch(string(text), -1)
	if len(excerpts) < 4 {
		t.Fatalf("the page has %d excerpts, fewer than it has examples", len(excerpts))
	}
	for _, e := range excerpts {
		file, err := os.ReadFile(filepath.Join("../..", e[1]))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains("\n"+string(file), "\n"+e[2]) {
			t.Errorf("%s does not contain the page's excerpt:\n%s", e[1], e[2])
		}
	}
	for _, pattern := range []string{
		"function-go/*.go", "function-python/*.py", "function-javascript/*.js", "worker-go/*.go", "function-express/*.js",
		"function-next/app/charge/*.js", "function-fastapi/*.py", "function-django/*.py", "function-nethttp/*.go",
		"function-spring/src/main/java/example/[CR]*.java",
	} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v, %v", pattern, files, err)
		}
		for _, file := range files {
			if !strings.Contains(string(text), "](../local/examples/"+file+")") {
				t.Errorf("the page does not link to %s", file)
			}
		}
	}
}
