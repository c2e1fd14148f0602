package main

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// rule forbids what a pattern matches, except where a longer expression makes it legitimate.
type rule struct {
	pattern *regexp.Regexp
	except  *regexp.Regexp
	instead string
}

type rules struct {
	each []rule
	any  *regexp.Regexp // all patterns in one, so that most texts are searched only once
}

// readRules reads one rule from each line: a pattern, what to write instead, and where the words are right, separated
// by tabs.
func readRules(r io.Reader) (rules, error) {
	var all rules
	var patterns []string
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		if text := lines.Text(); text != "" && !strings.HasPrefix(text, "#") {
			rule, err := newRule(strings.Split(text, "\t"))
			if err != nil {
				return rules{}, fmt.Errorf("rule %q: %w", text, err)
			}
			all.each = append(all.each, rule)
			patterns = append(patterns, rule.pattern.String())
		}
	}
	all.any = regexp.MustCompile(strings.Join(patterns, "|"))
	return all, lines.Err()
}

func newRule(fields []string) (rule, error) {
	if len(fields) < 2 || len(fields) > 3 {
		return rule{}, fmt.Errorf("want two or three fields, have %d", len(fields))
	}
	pattern, err := regexp.Compile(`\b(?:` + fields[0] + `)\b`)
	r := rule{pattern: pattern, instead: fields[1]}
	if err == nil && len(fields) == 3 {
		r.except, err = regexp.Compile(fields[2])
	}
	return r, err
}

// broken is a rule that a text breaks, and the words that break it.
type broken struct{ words, instead string }

func (r rules) check(text string) []broken {
	text = strings.ToLower(text)
	if !r.any.MatchString(text) {
		return nil
	}
	var found []broken
	for _, rule := range r.each {
		rest := text
		if rule.except != nil {
			rest = rule.except.ReplaceAllString(text, "·")
		}
		if words := rule.pattern.FindString(rest); words != "" {
			found = append(found, broken{words, rule.instead})
		}
	}
	return found
}
