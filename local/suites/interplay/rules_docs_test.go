package interplay

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	marks  = regexp.MustCompile("[`*]")
	links  = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	spaces = regexp.MustCompile(`\s+`)
)

// plain returns the words of a page.
func plain(page string) string {
	return spaces.ReplaceAllString(links.ReplaceAllString(marks.ReplaceAllString(page, ""), "$1"), " ")
}

func TestEachRuleQuotesItsPage(t *testing.T) {
	t.Parallel()
	for i := range Rules {
		page, _, part := strings.Cut(Rules[i].In, ",")
		if page == "openapi.yaml" {
			page = "functions/gateway/openapi.yaml"
		}
		text, err := os.ReadFile(filepath.Join("..", "..", "..", page))
		if err != nil {
			t.Errorf("%s: %v", Rules[i].Name, err)
			continue
		}
		for words := range strings.SplitSeq(strings.TrimSuffix(Rules[i].Quote, "."), " … ") {
			if !part && !strings.Contains(plain(string(text)), plain(words)) {
				t.Errorf("%s does not say %q, which rule %q is about", page, words, Rules[i].Name)
			}
		}
	}
}
