package main

import (
	"slices"
	"strings"
	"testing"
)

func TestEachRuleFindsItsWordsAndAllowsItsExceptions(t *testing.T) {
	rules, err := readRules(strings.NewReader(list))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"The house is full.":                  "house",
		"A warehouse, built in house.":        "",
		"Whoever calls, nobody answers.":      "whoever nobody",
		"published by who owns it":            "by who",
		"It is a question of who owns it.":    "",
		"To tell one attempt from the next.":  "",
		"This tells the client what is next.": "tells",
		"initdb runs as the user \"nobody\".": "",
	} {
		var found []string
		for _, b := range rules.check(text) {
			found = append(found, b.words)
		}
		if got := strings.Join(found, " "); got != want {
			t.Errorf("%s: found %q, want %q", text, got, want)
		}
	}
}

func TestTheTextOfAFileIsWhatPeopleRead(t *testing.T) {
	for _, tt := range []struct{ path, source, want string }{
		{"a.md", "A `house` at [home](house.md).\n```sh\nhouse\n```\nEnd.", "A · at [home·.|End."},
		{"a.go", "package a\n\n// one\nvar TestNobodyWaits = `two\nthree`", "a|// one|Test Nobody Waits|`two|three`"},
		{"a.sql", "SELECT said -- one\nFROM t", " one"},
		{"infra/Dockerfile", "FROM house # one", " one"},
		{"a.bin", "house", ""},
	} {
		var texts []string
		if read := reader(tt.path); read != nil {
			for _, l := range read([]byte(tt.source)) {
				texts = append(texts, l.text)
			}
		}
		if got := strings.Join(texts, "|"); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.path, got, tt.want)
		}
	}
}

func TestSentencesAreThoseOfParagraphsAndLists(t *testing.T) {
	source := "# A heading of four words\n\nThe first sentence has\nsix words. The second has five.\n- one item of a list\n\n" +
		"```sh\nnot this line of shell\n```\n| nor this row of a table |\n"
	var texts []string
	for _, p := range sentences("a.md", []byte(source)) {
		texts = append(texts, strings.TrimSpace(p.text))
	}
	if want := []string{"The first sentence has six words", "The second has five", "one item of a list"}; !slices.Equal(texts, want) {
		t.Errorf("got %q, want %q", texts, want)
	}
}

func TestACommentIsReadAsAWholeAndDirectivesAreLeftOut(t *testing.T) {
	source := "package a\n\n// B is the first\n// of two lines.\n//\n//go:generate true and more words\nvar B int // too short\n"
	found := comments("a.go", []byte(source))
	if len(found) != 1 || found[0].text != "B is the first of two lines." || found[0].line != 3 {
		t.Errorf("got %+v", found)
	}
}
