package gateway_test

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// firstLoad matches the scripts and styles in index.html, which a browser loads before it shows anything.
var firstLoad = regexp.MustCompile(`(?:src|href)="\./(assets/[^"]+)"`)

const (
	firstLoadLimit  = 160 << 10
	allScriptsLimit = 240 << 10
)

func TestTheFirstLoadOfTheDashboardIsSmall(t *testing.T) {
	t.Parallel()
	index := built(t, "index.html")
	names := firstLoad.FindAllSubmatch(index, -1)
	if len(names) == 0 {
		t.Fatal("index.html names no assets")
	}
	sent := gzipped(t, index)
	for _, name := range names {
		sent += gzipped(t, built(t, string(name[1])))
	}
	if sent > firstLoadLimit {
		t.Errorf("the first load has %d bytes after gzip, at most %d are allowed: split what the first page does not need", sent,
			firstLoadLimit)
	}
}

func TestTheScriptsOfTheDashboardAreSmall(t *testing.T) {
	t.Parallel()
	scripts, err := filepath.Glob("dashboard/dist/assets/*.js")
	if err != nil || len(scripts) == 0 {
		t.Fatal("there are no scripts: ", err)
	}
	size := 0
	for _, path := range scripts {
		size += gzipped(t, built(t, "assets/"+filepath.Base(path)))
	}
	if size > allScriptsLimit {
		t.Errorf("all scripts have %d bytes after gzip, at most %d are allowed", size, allScriptsLimit)
	}
}

func built(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("dashboard/dist", name))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func gzipped(t *testing.T, content []byte) int {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Len()
}
