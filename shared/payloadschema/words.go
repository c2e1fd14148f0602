package payloadschema

import (
	"encoding/json"
	"fmt"
	"math/big"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/jobweaver/jobweaver/shared/strictjson"
)

// wrongValue returns a text about what a wrong value must be.
func wrongValue(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Type:
		return "must be " + typeList(k.Want)
	case *kind.Const:
		return "must be " + valueText(k.Want)
	case *kind.Enum:
		values := make([]string, len(k.Want))
		for i, value := range k.Want {
			values[i] = valueText(value)
		}
		return "must be " + orList(values)
	case *kind.Format:
		return "must be " + formatText(k.Want)
	case *kind.Pattern:
		return "must match " + cut(k.Want)
	case *kind.MinLength:
		return atLeast(k.Want, "character")
	case *kind.MaxLength:
		return fmt.Sprintf("must have at most %d characters", k.Want)
	case *kind.MinItems:
		return atLeast(k.Want, "entry")
	case *kind.MaxItems:
		return fmt.Sprintf("must have at most %d entries, not %d", k.Want, k.Got)
	case *kind.MinProperties:
		return atLeast(k.Want, "field")
	case *kind.MaxProperties:
		return fmt.Sprintf("must have at most %d fields, not %d", k.Want, k.Got)
	case *kind.Minimum:
		return "must be at least " + number(k.Want)
	case *kind.Maximum:
		return "must be at most " + number(k.Want)
	case *kind.ExclusiveMinimum:
		return "must be more than " + number(k.Want)
	case *kind.ExclusiveMaximum:
		return "must be less than " + number(k.Want)
	case *kind.MultipleOf:
		return "must be a multiple of " + number(k.Want)
	case *kind.Contains, *kind.MinContains:
		return "has too few entries of a kind that it needs"
	case *kind.MaxContains:
		return "has too many entries of one kind"
	case *kind.FalseSchema:
		return "is not allowed"
	default:
		return "is not allowed as it is"
	}
}

func atLeast(n int, what string) string {
	switch {
	case n > 1 && what == "entry":
		return fmt.Sprintf("must have at least %d entries", n)
	case n > 1:
		return fmt.Sprintf("must have at least %d %ss", n, what)
	}
	return "must not be empty"
}

func number(r *big.Rat) string {
	if r.IsInt() {
		return cut(r.Num().String())
	}
	f, _ := r.Float64()
	return strconv.FormatFloat(f, 'g', -1, 64)
}

func formatText(format string) string {
	switch format {
	case "email":
		return "an e-mail address, as ada@example.org"
	case "uri":
		return "an absolute URI, as https://example.org/x"
	case "date-time":
		return "an RFC 3339 instant, as 2026-11-22T08:00:00Z"
	case "date":
		return "a date, as 2026-11-22"
	case "uuid":
		return "a UUID"
	}
	return "of the format " + cut(format)
}

// patternWords describes the patterns of the built-in job types for users who do not read regular expressions.
var patternWords = map[string]string{
	"^[Hh][Tt][Tt][Pp][Ss]?://": "must begin with http:// or https://",
	`^[^\x00-\x1f\x7f]*$`:       "must have no line break and no other control character",
	`^.*[^\s@]@[^\s@]+$`:        "must be an address, as ada@example.org",
	"^[A-Za-z0-9+/]*={0,2}$":    "must be base64",
	`^[^/\\\x00-\x1f\x7f]+$`:    "must be a name without a folder",
	"^[ -~]*$":                  "must be visible ASCII and blanks",
}

func typeList(types []string) string {
	named := make([]string, 0, len(types))
	if i := slices.Index(types, "null"); i >= 0 { // last
		types = append(slices.Delete(slices.Clone(types), i, i+1), "null")
	}
	for _, t := range types {
		switch t {
		case "array", "object", "integer":
			t = "an " + t
		case "boolean":
			t = "true or false"
		case "null":
		default:
			t = "a " + t
		}
		named = append(named, t)
	}
	return orList(named)
}

// orList returns "a, b or c"; of many names only the first ones.
func orList(items []string) string {
	const most = 20
	kept := make([]string, 0, most)
	for _, item := range items {
		if len(kept) < most && !slices.Contains(kept, item) {
			kept = append(kept, cut(item))
		}
	}
	last := len(kept) - 1
	switch {
	case len(items) > most:
		return "one of " + strings.Join(kept, ", ") + ", …"
	case last < 1:
		return strings.Join(kept, "")
	}
	return strings.Join(kept[:last], ", ") + " or " + kept[last]
}

// valueText returns a value as JSON, and a constant that is a name without its quotes.
func valueText(v any) string {
	if s, ok := v.(string); ok && strictjson.IsPlain(s) {
		return cut(s)
	}
	b, err := json.Marshal(v)
	if err != nil {
		return "another value"
	}
	return cut(string(b))
}

// cut shortens text from a schema, which would otherwise fill the answer.
func cut(s string) string {
	const most = 100
	if len(s) <= most {
		return s
	}
	end := most
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}

// lookUp returns the value in a schema's document at a location in the library's notation, followed by the names below.
func lookUp(document any, location string, below ...string) any {
	_, fragment, _ := strings.Cut(location, "#")
	names := below
	if pointer, err := url.PathUnescape(fragment); err == nil {
		names = append(slices.Collect(jsontext.Pointer(pointer).Tokens()), below...)
	}
	for _, name := range names {
		switch v := document.(type) {
		case map[string]any:
			document = v[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(v) {
				return nil
			}
			document = v[i]
		default:
			return nil
		}
	}
	return document
}
