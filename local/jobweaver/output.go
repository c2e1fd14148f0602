package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/local/jobweaver/yamldoc"
)

// format is the value of --output.
type format string

const (
	formatText format = "text"
	formatJSON format = "json"
	formatYAML format = "yaml"
	formatName format = "name"
)

var formats = []string{
	string(formatText) + "\tfor people", string(formatJSON) + "\tthe answer of the API",
	string(formatYAML) + "\tthe same as YAML",
	string(formatName) + "\tids alone, one a line",
}

func (f *format) String() string { return string(*f) }

func (f *format) Type() string { return "text|json|yaml|name" }

func (f *format) Set(text string) error {
	if !slices.Contains([]format{formatText, formatJSON, formatYAML, formatName}, format(text)) {
		return errors.New("must be text, json, yaml or name")
	}
	*f = format(text)
	return nil
}

func formatOf(cmd *cobra.Command) format { return format(cmd.Flag("output").Value.String()) }

// present prints an answer of the API as --output wants it: with text, as show does.
func present(cmd *cobra.Command, raw json.RawMessage, show func(io.Writer) error) error {
	w := cmd.OutOrStdout()
	switch form := formatOf(cmd); {
	case form == formatText:
		return show(w)
	case len(raw) == 0:
		return nil
	case form == formatName:
		return showNames(w, raw)
	case form == formatYAML:
		return yamldoc.Write(w, raw)
	}
	return showJSON(w, raw)
}

// showJSON prints an answer indented. Numbers and the order of keys stay as the API has written them.
func showJSON(w io.Writer, raw json.RawMessage) error {
	text, err := jsontext.AppendFormat(nil, raw, jsontext.WithIndent("  "), jsontext.AllowDuplicateNames(true))
	if err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	_, err = fmt.Fprintln(w, escaped(string(text)))
	return err
}

// escaped is the same JSON without what a terminal obeys and JSON lets stand: DEL, the controls from 0x80 on, what
// turns the direction of a line.
func escaped(doc string) string {
	var b strings.Builder
	for _, r := range doc {
		if r == '\n' || unicode.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}

// showNames prints the id of the thing in an answer, or the ids of those that it lists.
func showNames(w io.Writer, raw json.RawMessage) error {
	var thing map[string]json.RawMessage
	if err := json.Unmarshal(raw, &thing); err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	names := []string{nameOf(thing)}
	if names[0] == "" {
		var lists bool
		if names, lists = namesIn(thing); !lists {
			return usage("nothing in this answer has an id: use -o text or -o json")
		}
	}
	for _, name := range names {
		if _, err := fmt.Fprintln(w, line(name)); err != nil {
			return err
		}
	}
	return nil
}

// namesIn are the names of all objects that page lists; lists tells whether it has a list at all.
func namesIn(page map[string]json.RawMessage) (names []string, lists bool) {
	for _, field := range slices.Sorted(maps.Keys(page)) {
		var list []map[string]json.RawMessage
		if json.Unmarshal(page[field], &list) != nil || list == nil {
			continue
		}
		if len(list) == 0 {
			lists = true
		}
		for _, thing := range list {
			if name := nameOf(thing); name != "" {
				names, lists = append(names, name), true
			}
		}
	}
	return names, lists
}

// nameOf is the id by which other commands take a thing: a control has two words. Empty: it has none.
func nameOf(thing map[string]json.RawMessage) string {
	for _, id := range []string{"jobId", "operationId", "workerId", "keyId", "name", "id"} {
		var text string
		if json.Unmarshal(thing[id], &text) != nil || text == "" {
			continue
		}
		var kind string
		if id == "name" && json.Unmarshal(thing["kind"], &kind) == nil {
			return kind + " " + text
		}
		return text
	}
	return ""
}
