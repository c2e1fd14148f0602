//go:build !nodev

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Each jobweaver command in the README and in docs exists with its flags, even those that no test runs.
func TestDocsNameExistingCommands(t *testing.T) {
	t.Parallel()
	count := 0
	for _, page := range pages(t) {
		if page == "docs/events.md" || page == "docs/settings.md" {
			continue // these pages have no commands, only sentences about jobweaver
		}
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		for _, command := range commands.FindAllStringSubmatch(string(text), -1) {
			count++
			if problem := notACommand(strings.Fields(command[1])); problem != "" {
				t.Errorf("%s: jobweaver %s: %s", page, command[1], problem)
			}
		}
	}
	if count < 100 {
		t.Errorf("only %d commands: the test does not see what it should", count)
	}
}

// commands matches commands at the beginning of a line or of a code span.
var commands = regexp.MustCompile("(?m)(?:`|^ *|\\$\\()(?:bin/)?jobweaver ([a-z][^`|\n#;)]*)")

// Each alert's runbook begins with a command, as a code span.
func TestEachRunbookBeginsWithACommand(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(root + "/docs/runbooks.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, section := range strings.Split(string(text), "\n## ")[1:] {
		name, rest, _ := strings.Cut(section, "\n\n")
		if !regexp.MustCompile("^`(jobweaver|kubectl|curl|psql|openssl|kafka-con\\S+) ").MatchString(rest) {
			t.Errorf("%s begins with %.40s", name, rest)
		}
	}
}

// TestOperationsGuideNamesExistingTests checks that each test in the guide exists: after a disaster there is no time
// to search for it.
func TestOperationsGuideNamesExistingTests(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	tests := regexp.MustCompile(`\bTest[A-Z]\w+`).FindAllString(string(text), -1)
	if len(tests) < 6 {
		t.Fatalf("only %d tests: the test does not see what it should", len(tests))
	}
	if notACommand([]string{"topics", "empty", "--never"}) == "" || notACommand([]string{"topics", "fill"}) == "" {
		t.Error("everything is a command")
	}
	all := testNames(t)
	for _, name := range tests {
		if !all[name] {
			t.Errorf("there is no %s", name)
		}
	}
}

// notACommand returns what is wrong with the words after jobweaver; empty: nothing.
func notACommand(words []string) string {
	cmd, rest, err := newRoot().Find(words)
	if err != nil {
		return err.Error()
	}
	if cmd.HasSubCommands() && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		return "it has no " + rest[0]
	}
	for _, word := range rest {
		if word == "--" {
			break // the rest belongs to another program
		}
		if flag, ok := strings.CutPrefix(word, "--"); ok && cmd.Flag(flag) == nil {
			return "it has no flag --" + flag
		}
	}
	return ""
}

func testNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	for _, pattern := range []string{"../*/*_test.go", "../suites/*/*_test.go", "../jobweaver/*/*_test.go", "../../shared/*/*_test.go", "../../functions/*/*_test.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, found := range declared.FindAllStringSubmatch(string(text), -1) {
				names[found[1]] = true
			}
		}
	}
	return names
}
