package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTheOperationsGuideNamesWhatThereIs: each command in it is one, with its flags, and each test that it names exists.
// Who follows it after a disaster has no time to find out.
func TestTheOperationsGuideNamesWhatThereIs(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	commands := regexp.MustCompile("(?m)(?:`|^ *)jobweaver ([a-z][^`|\n#]*)").FindAllStringSubmatch(string(text), -1)
	tests := regexp.MustCompile(`\bTest[A-Z]\w+`).FindAllString(string(text), -1)
	if len(commands) < 15 || len(tests) < 8 {
		t.Fatalf("only %d commands and %d tests: the test does not see what it should", len(commands), len(tests))
	}
	for _, command := range commands {
		if problem := notACommand(strings.Fields(command[1])); problem != "" {
			t.Errorf("jobweaver %s: %s", command[1], problem)
		}
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

// notACommand says what is wrong with the words after jobweaver; empty: nothing.
func notACommand(words []string) string {
	cmd, rest, err := newRoot().Find(words)
	if err != nil {
		return err.Error()
	}
	if cmd.HasSubCommands() && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		return "it has no " + rest[0]
	}
	for _, word := range rest {
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
	for _, pattern := range []string{"../*/*_test.go", "../../shared/*/*_test.go", "../../functions/*/*_test.go"} {
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
