package cli

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

// Format is the value of --output.
type Format string

// The formats.
const (
	FormatText Format = "text"
	FormatJSON Format = "json"
	FormatYAML Format = "yaml"
	formatName Format = "name"
)

// Formats are the values of --output with their help, for completion.
var Formats = []string{
	string(FormatText) + "\tfor people", string(FormatJSON) + "\tthe answer of the API",
	string(FormatYAML) + "\tthe same as YAML",
	string(formatName) + "\tids alone, one a line",
}

func (f *Format) String() string { return string(*f) }

// Type returns the value as help shows it.
func (f *Format) Type() string { return "text|json|yaml|name" }

// Set parses one of the formats.
func (f *Format) Set(text string) error {
	if !slices.Contains([]Format{FormatText, FormatJSON, FormatYAML, formatName}, Format(text)) {
		return errors.New("must be text, json, yaml or name")
	}
	*f = Format(text)
	return nil
}

// FormatOf returns the format of --output.
func FormatOf(cmd *cobra.Command) Format { return Format(cmd.Flag("output").Value.String()) }

// Present prints a response of the API in the format of --output; text is printed by show.
func Present(cmd *cobra.Command, raw json.RawMessage, show func(io.Writer) error) error {
	w := cmd.OutOrStdout()
	switch form := FormatOf(cmd); {
	case form == FormatText:
		return show(w)
	case len(raw) == 0:
		return nil
	case form == formatName:
		return ShowNames(w, raw)
	case form == FormatYAML:
		return yamldoc.Write(w, raw)
	}
	return showJSON(w, raw)
}

// showJSON prints a response indented. Numbers and the order of keys stay as in the response.
func showJSON(w io.Writer, raw json.RawMessage) error {
	text, err := jsontext.AppendFormat(nil, raw, jsontext.WithIndent("  "), jsontext.AllowDuplicateNames(true))
	if err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	_, err = fmt.Fprintln(w, escaped(string(text)))
	return err
}

// escaped escapes characters that JSON allows and a terminal interprets: DEL, the controls from U+0080 on, and those
// that change the direction of a line.
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

// ShowNames prints the id of the resource in a response, or the ids of those that it lists.
func ShowNames(w io.Writer, raw json.RawMessage) error {
	var thing map[string]json.RawMessage
	if err := json.Unmarshal(raw, &thing); err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	names := []string{nameOf(thing)}
	if names[0] == "" {
		var lists bool
		if names, lists = namesIn(thing); !lists {
			return Usage("nothing in this answer has an id: use -o text or -o json")
		}
	}
	for _, name := range names {
		if _, err := fmt.Fprintln(w, Line(name)); err != nil {
			return err
		}
	}
	return nil
}

// namesIn returns the names of all objects on a page. lists reports whether the response has a list at all.
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

// nameOf returns the id of a resource as other commands take it: a control has two words. Empty: it has none.
func nameOf(thing map[string]json.RawMessage) string {
	for _, id := range []string{"jobId", "operationId", "flowId", "batchId", "workerId", "keyId", "name", "id"} {
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
	var queue string
	if thing["origin"] != nil && json.Unmarshal(thing["queue"], &queue) == nil { // other resources have a queue, too
		return queue
	}
	return ""
}
