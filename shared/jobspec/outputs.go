package jobspec

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/strictjson"
)

// outputMark is the member of an object in a payload that stands for the output of another job:
// {"$output": "name", "path": "$.a[0]", "default": …}. The path and the default may be absent.
// Why the worker replaces it: docs/decisions/groups.md#the-worker-puts-outputs-into-a-payload
const outputMark = "$output"

// itemMark is the member of an object in the payload of a fan-out that stands for an element of its array, or for the
// element's index: {"$item": "value", "path": "$.a[0]", "default": …} or {"$item": "index"}.
const (
	itemMark  = "$item"
	itemValue = "value"
	itemIndex = "index"
)

// reference is such an object.
type reference struct {
	name     string // of the job
	item     string // itemValue or itemIndex; empty: it stands for the output of a job
	path     string
	fallback jsontext.Value // nil: it has no default
	raw      jsontext.Value
}

// readReference returns the reference that a value of sound JSON is, or what is wrong with it; nil, nil: it is none.
// It may stand for an item only if items is set.
func readReference(value jsontext.Value, at string, items bool) (*reference, strictjson.Problems) {
	ref, marks, bare := reference{path: "$", raw: value}, 0, true
	var p strictjson.Problems
	text := func(name string, value jsontext.Value) string {
		if value.Kind() != '"' {
			p.Add(strictjson.Join(at, name), "must be a string")
			return ""
		}
		unquoted, _ := jsontext.AppendUnquote(nil, value)
		return string(unquoted)
	}
	err := eachMember(value, func(name string, value jsontext.Value) error {
		switch {
		case name == outputMark:
			marks++
			ref.name = text(name, value)
		case name == itemMark && items:
			marks++
			if ref.item = text(name, value); ref.item != itemValue && ref.item != itemIndex {
				p.Add(strictjson.Join(at, name), fmt.Sprintf("must be %q or %q", itemValue, itemIndex))
			}
		case name == "path":
			ref.path, bare = text(name, value), false
		case name == "default":
			ref.fallback, bare = slices.Clone(value), false
		default:
			p.Add(strictjson.Join(at, name), "is not a member of a reference: it has $output, path and default")
		}
		return nil
	})
	if err != nil || marks == 0 {
		return nil, nil
	}
	if marks > 1 || ref.item == itemIndex && !bare {
		p.Add(at, "must be a reference to one thing: an output, an element, or an index without path and default")
	}
	if _, wrong := parsePath(ref.path); wrong != "" && len(p) == 0 {
		p.Add(strictjson.Join(at, "path"), wrong)
	}
	return &ref, p
}

// Outputs returns the names of the jobs to whose outputs a payload refers, each once.
func Outputs(payload []byte) (names []string, problems strictjson.Problems) {
	return outputsOf(payload, false)
}

// outputsOf is Outputs of a payload that may refer to items, too.
func outputsOf(payload []byte, items bool) (names []string, _ strictjson.Problems) {
	var f filler
	f.replace = f.references(items, func(ref *reference, _ string) (jsontext.Value, error) {
		if ref.item == "" && !slices.Contains(names, ref.name) {
			names = append(names, ref.name)
		}
		return jsontext.Value("null"), nil
	})
	if _, err := f.fill(nil, payload, "payload"); err != nil {
		f.problems.Add("payload", "is not valid JSON")
	}
	return names, f.problems
}

// OutputError is why a payload cannot be completed with the outputs of other jobs.
type OutputError struct {
	Code    apierror.Code
	Message string
}

func (e *OutputError) Error() string { return e.Message }

// MaxFilledBytes is the most bytes of a payload with the outputs to which it refers.
const MaxFilledBytes = MaxJobBytes

// FillInOutputs puts outputs in the places of the references in a payload. output returns the output of a job by its
// name, and false if it has none. The error is an *OutputError.
func FillInOutputs(payload []byte, output func(name string) (jsontext.Value, bool)) ([]byte, error) {
	room := MaxFilledBytes
	var f filler
	f.replace = f.references(false, func(ref *reference, at string) (jsontext.Value, error) {
		value := ref.fallback
		if whole, has := output(ref.name); has {
			if isTooLarge(whole) {
				return nil, &OutputError{apierror.InputTooLarge, fmt.Sprintf("%s: the outputs of %s are too large", at, ref.name)}
			}
			if found, is := selectPath(whole, ref.path); is {
				value = found
			}
		}
		if value == nil {
			missing := fmt.Sprintf("%s: the output of %s has no %s", at, ref.name, ref.path)
			return nil, &OutputError{apierror.OutputMissing, missing}
		}
		if room -= len(value); room < 0 {
			return nil, filledTooLarge()
		}
		return value, nil
	})
	filled, err := f.fill(make([]byte, 0, len(payload)), payload, "payload")
	if err == nil && len(f.problems) > 0 { // the gateway has refused them
		err = &OutputError{apierror.OutputMissing, f.problems.Message("payload")}
	}
	if err == nil && len(filled) > MaxFilledBytes {
		err = filledTooLarge()
	}
	return filled, err
}

func filledTooLarge() error {
	return &OutputError{apierror.InputTooLarge, fmt.Sprintf(
		"the payload has more than %d bytes with the outputs to which it refers", MaxFilledBytes)}
}

// filler puts something else in the place of some objects.
type filler struct {
	replace  func(object jsontext.Value, at string) (jsontext.Value, error) // nil: the object stays
	problems strictjson.Problems
}

// references replaces objects that are references, also to items if items is true.
func (f *filler) references(
	items bool, with func(ref *reference, at string) (jsontext.Value, error),
) func(jsontext.Value, string) (jsontext.Value, error) {
	return func(object jsontext.Value, at string) (jsontext.Value, error) {
		ref, wrong := readReference(object, at, items)
		f.problems.AddAll(wrong)
		switch {
		case len(wrong) > 0:
			return jsontext.Value("null"), nil
		case ref == nil:
			return nil, nil
		}
		return with(ref, at)
	}
}

// fill appends a value to dst.
func (f *filler) fill(dst []byte, value jsontext.Value, at string) (_ []byte, err error) {
	switch value.Kind() { //nolint:exhaustive // the others have no members
	case '{':
		if other, err := f.replace(value, at); other != nil || err != nil {
			return append(dst, other...), err
		}
		dst = append(dst, '{')
		first := len(dst)
		err = eachMember(value, func(name string, member jsontext.Value) (err error) {
			dst, err = f.fill(appendName(dst, name, first), member, strictjson.Join(at, name))
			return err
		})
		return append(dst, '}'), err
	case '[':
		dst = append(dst, '[')
		err = eachElement(value, func(i int, element jsontext.Value) (err error) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst, err = f.fill(dst, element, fmt.Sprintf("%s[%d]", at, i))
			return err
		})
		return append(dst, ']'), err
	default:
		return append(dst, bytes.TrimSpace(value)...), nil
	}
}

// eachElement visits the elements of an array.
func eachElement(value jsontext.Value, visit func(i int, element jsontext.Value) error) error {
	d := jsontext.NewDecoder(bytes.NewReader(value), jsontext.AllowDuplicateNames(true))
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for i := 0; d.PeekKind() != ']'; i++ {
		element, err := d.ReadValue()
		if err == nil {
			err = visit(i, element)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// selectPath returns the value at a path.
func selectPath(value jsontext.Value, path string) (jsontext.Value, bool) {
	steps, wrong := parsePath(path)
	if wrong != "" {
		return nil, false
	}
	for _, s := range steps {
		var found jsontext.Value
		if s.index >= 0 && value.Kind() == '[' {
			_ = eachElement(value, func(i int, element jsontext.Value) error { // an output is sound JSON
				if i == s.index {
					found = slices.Clone(element)
				}
				return nil
			})
		} else if s.index < 0 {
			_ = eachMember(value, func(name string, member jsontext.Value) error {
				if name == s.name {
					found = slices.Clone(member)
				}
				return nil
			})
		}
		if found == nil {
			return nil, false
		}
		value = found
	}
	return value, true
}

// step goes from a value to one in it.
type step struct {
	name  string
	index int // -1: by name
}

// parsePath reads a path of those of RFC 9535 that lead to at most one value: $, .name, ['name'] and [0].
func parsePath(path string) (steps []step, wrong string) {
	const form = "must be a path such as $.items[0]['full name']"
	rest, ok := strings.CutPrefix(path, "$")
	if !ok {
		return nil, form
	}
	for rest != "" {
		var s step
		if s, rest, ok = nextStep(rest); !ok {
			return nil, form
		}
		steps = append(steps, s)
	}
	return steps, ""
}

func nextStep(path string) (s step, rest string, ok bool) {
	if name, is := strings.CutPrefix(path, "."); is {
		n := 0
		for n < len(name) && (isNameByte(name[n]) || n > 0 && isDigit(name[n])) {
			n++
		}
		return step{name[:n], -1}, name[n:], n > 0 && utf8.ValidString(name[:n])
	}
	inside, is := strings.CutPrefix(path, "[")
	if !is || inside == "" {
		return s, "", false
	}
	if quote := inside[0]; quote == '\'' || quote == '"' {
		name, rest, ok := quoted(inside[1:], quote)
		rest, closed := strings.CutPrefix(rest, "]")
		return step{name, -1}, rest, ok && closed
	}
	digits, rest, closed := strings.Cut(inside, "]")
	index, err := strconv.ParseUint(digits, 10, 31)
	return step{"", int(index)}, rest, closed && err == nil && strconv.FormatUint(index, 10) == digits
}

func isNameByte(c byte) bool {
	return c >= utf8.RuneSelf || c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// quoted reads a name up to its closing quote, with the escapes of JSON and that of a single quote.
func quoted(text string, quote byte) (name, rest string, ok bool) {
	literal := []byte{'"'}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == quote:
			unquoted, err := jsontext.AppendUnquote(nil, append(literal, '"'))
			return string(unquoted), text[i+1:], err == nil
		case c == '\\' && i+1 < len(text):
			if i++; text[i] != '\'' {
				literal = append(literal, c)
			}
			literal = append(literal, text[i])
		case c == '"':
			literal = append(literal, '\\', c)
		default:
			literal = append(literal, c)
		}
	}
	return "", "", false
}
