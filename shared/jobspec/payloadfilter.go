package jobspec

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// PayloadFilter is a value that payloads have at a path: of customer.id:17, items[0].sku:A-17 or ['full name']:Ada.
type PayloadFilter struct {
	Path  []string // names of members, and indexes of elements
	Value string   // a text as it is, and a number, true, false or null as JSON
}

// WrongPayloadFilter returns what is wrong with such a text, or "".
func WrongPayloadFilter(text string) string {
	_, wrong := ReadPayloadFilter(text)
	return wrong
}

// ReadPayloadFilter reads one. Its path is that of a reference to an output, without the $, and a name may
// have any characters that do not end it.
func ReadPayloadFilter(text string) (f PayloadFilter, wrong string) {
	if utf8.RuneCountInString(text) > MaxKey {
		return PayloadFilter{}, fmt.Sprintf("must have at most %d characters", MaxKey)
	}
	const form = "must be a path and a value, such as customer.id:17 or items[0]['full name']:Ada"
	rest := text
	if !strings.HasPrefix(text, "[") {
		rest = "." + text
	}
	for !strings.HasPrefix(rest, ":") {
		if name, is := strings.CutPrefix(rest, "."); is {
			end := strings.IndexAny(name, ".[:")
			if end <= 0 {
				return PayloadFilter{}, form
			}
			f.Path, rest = append(f.Path, name[:end]), name[end:]
			continue
		}
		s, after, ok := nextStep(rest)
		if !ok {
			return PayloadFilter{}, form
		}
		if s.index >= 0 {
			s.name = strconv.Itoa(s.index)
		}
		f.Path, rest = append(f.Path, s.name), after
	}
	if f.Value = rest[1:]; f.Value == "" {
		return PayloadFilter{}, form
	}
	return f, ""
}
