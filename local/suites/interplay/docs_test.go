package interplay

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestTheDocsHaveTheNumberOfRules(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"README.md", "../../../docs/reliability.md"} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf(" %d rules", len(Rules)); !strings.Contains(string(text), want) {
			t.Errorf("%s has not%s", path, want)
		}
	}
}

// A page has line breaks, and emphasis, where a quote has none; an ellipsis leaves something out.
func TestEachQuoteOfAPageIsInIt(t *testing.T) {
	t.Parallel()
	for _, rule := range Rules {
		page, _, _ := strings.Cut(rule.In, ",")
		if !strings.HasPrefix(page, "docs/") {
			continue
		}
		text, err := os.ReadFile("../../../" + page)
		if err != nil {
			t.Fatal(err)
		}
		one := strings.Join(strings.Fields(strings.ReplaceAll(string(text), "**", "")), " ")
		for part := range strings.SplitSeq(rule.Quote, "…") {
			if !strings.Contains(one, strings.TrimSpace(part)) {
				t.Errorf("%s: %s has not %q", rule.Name, rule.In, part)
			}
		}
	}
}
