//go:build !nodev

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	pageLink = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	codeLink = regexp.MustCompile(`\bdocs/[\w/-]+\.md(?:#[\p{L}\p{N}_-]+)?`)
	heading  = regexp.MustCompile(`(?m)^#+ +(.+)$`)
	anchorOf = regexp.MustCompile(`<a (?:id|name)="([^"]+)"`)
	linkText = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	notASlug = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
	anyFence = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
)

// Every link of the pages leads to a file and a heading that exist, and so does every page that the code names.
func TestLinksInTheDocsAndTheCodeLeadSomewhere(t *testing.T) {
	t.Parallel()
	pages, code := documentedFiles(t)
	for page, text := range pages {
		for _, link := range pageLink.FindAllStringSubmatch(anyFence.ReplaceAllString(text, ""), -1) {
			if target := link[1]; !strings.Contains(target, ":") {
				checkLink(t, pages, page, path.Dir(page), target)
			}
		}
	}
	for file, text := range code {
		for _, target := range codeLink.FindAllString(text, -1) {
			checkLink(t, pages, file, ".", target)
		}
	}
}

// Every decision is linked from the code that it shapes, so that a reader of the code finds it.
func TestLinksOfTheCodeReachEachDecision(t *testing.T) {
	t.Parallel()
	pages, code := documentedFiles(t)
	linked := map[string]bool{}
	for _, text := range code {
		for _, target := range codeLink.FindAllString(text, -1) {
			linked[target] = true
		}
	}
	entries := 0
	for page, text := range pages {
		if path.Dir(page) != "docs/decisions" || path.Base(page) == "README.md" {
			continue
		}
		for _, anchor := range anchorsOf(text)[1:] { // without the page's title
			entries++
			if !linked[page+"#"+anchor] {
				t.Errorf("no code links to %s#%s", page, anchor)
			}
		}
	}
	if entries == 0 {
		t.Error("docs/decisions has no entry")
	}
}

func checkLink(t *testing.T, pages map[string]string, from, dir, target string) {
	t.Helper()
	name, anchor, hasAnchor := strings.Cut(target, "#")
	file := path.Join(dir, name)
	if name == "" {
		file = from
	}
	if _, err := os.Stat(filepath.Join(root, file)); err != nil {
		t.Errorf("%s links to %s, which does not exist", from, target)
	} else if text, isPage := pages[file]; hasAnchor && isPage && !slices.Contains(anchorsOf(text), anchor) {
		t.Errorf("%s links to %s, which has no such heading", from, target)
	}
}

// anchorsOf returns the anchors that GitHub gives to the headings of a page, in their order, and those of its HTML.
func anchorsOf(text string) (anchors []string) {
	seen := map[string]int{}
	for _, h := range heading.FindAllStringSubmatch(anyFence.ReplaceAllString(text, ""), -1) {
		plain := linkText.ReplaceAllString(h[1], "$1")
		slug := strings.ReplaceAll(notASlug.ReplaceAllString(strings.ToLower(plain), ""), " ", "-")
		if n := seen[slug]; n > 0 {
			anchors = append(anchors, fmt.Sprintf("%s-%d", slug, n))
		} else {
			anchors = append(anchors, slug)
		}
		seen[slug]++
	}
	for _, a := range anchorOf.FindAllStringSubmatch(text, -1) {
		anchors = append(anchors, a[1])
	}
	return anchors
}

// documentedFiles returns the pages and the files of code that git knows, by their paths.
func documentedFiles(t *testing.T) (pages, code map[string]string) {
	t.Helper()
	list := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = root
	names, err := list.Output()
	if err != nil {
		t.Fatalf("list the files that git knows: %v", err)
	}
	pages, code = map[string]string{}, map[string]string{}
	for name := range strings.SplitSeq(strings.TrimRight(string(names), "\x00"), "\x00") {
		into := code
		if path.Ext(name) == ".md" {
			into = pages
		} else if !isCode(name) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) { // deleted, and not yet committed
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		into[name] = string(text)
	}
	return pages, code
}

func isCode(name string) bool {
	kinds := []string{".go", ".sql", ".ts", ".tsx", ".py", ".yaml", ".yml", ".sh"}
	return slices.Contains(kinds, path.Ext(name)) || path.Base(name) == "Makefile" || strings.HasPrefix(name, "infra/") ||
		strings.HasPrefix(name, ".ci/")
}
