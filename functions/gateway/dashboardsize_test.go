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

const firstLoadLimit = 180 << 10

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
