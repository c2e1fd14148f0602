package jobspec

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// reader walks one JSON document, value by value, and notes every problem with its path. A syntax
// error, or too many problems, ends it: from then on it finds nothing any more.
type reader struct {
	problems
	d      jsontext.Decoder
	buf    bytes.Buffer
	prefix string // path of the document's root
	name   []byte // in an object: the member to be read
	over   bool
}

var readers = sync.Pool{New: func() any { return new(reader) }}

// newReader reads doc strictly: no duplicate names, no bad UTF-8, no lone surrogates.
func newReader(doc []byte, prefix string, options ...jsontext.Options) *reader {
	r := readers.Get().(*reader)
	r.problems, r.buf, r.prefix, r.over = nil, *bytes.NewBuffer(doc), prefix, false
	r.d.Reset(&r.buf, options...)
	return r
}

// close ends the document, and returns what is wrong with it. It gives r back.
func (r *reader) close() problems {
	if !r.over {
		if _, err := r.d.ReadToken(); err == nil {
			r.add(r.prefix, "is followed by more JSON")
		} else if !errors.Is(err, io.EOF) {
			r.fail(err)
		}
	}
	p := r.problems
	// A reader that waits in the pool must not keep the document in memory.
	r.problems, r.name, r.buf = nil, nil, bytes.Buffer{}
	r.d.Reset(&r.buf)
	readers.Put(r)
	return p
}

// path is that of the value read last.
func (r *reader) path() string { return pathOf(r.prefix, r.d.StackPointer()) }

// bad notes a problem with the value read last.
func (r *reader) bad(format string, args ...any) {
	r.badAt(r.path(), format, args...)
}

// badIn notes a problem with a member of the object read last.
func (r *reader) badIn(name, format string, args ...any) {
	r.badAt(join(r.path(), name), format, args...)
}

func (r *reader) badAt(path, format string, args ...any) {
	if !r.over {
		r.add(path, fmt.Sprintf(format, args...))
		r.over = r.full()
	}
}

func (r *reader) fail(err error) {
	var syntax *jsontext.SyntacticError
	switch {
	case r.over:
	case errors.As(err, &syntax) && !errors.Is(err, io.ErrUnexpectedEOF):
		why := strings.TrimPrefix(syntax.Err.Error(), "jsontext: ")
		if len(why) > maxPath {
			why = strings.ToValidUTF8(why[:maxPath], "") + "…"
		}
		r.badAt(pathOf(r.prefix, syntax.JSONPointer), "is not valid JSON: %s, at byte %d",
			why, syntax.ByteOffset)
	case errors.Is(err, io.EOF):
		r.badAt(r.prefix, "must not be empty")
	default:
		r.badAt(r.prefix, "is not valid JSON: it ends too early")
	}
	r.over = true
}

// raw reads any value; nil at the end of it all.
func (r *reader) raw() jsontext.Value {
	if r.over {
		return nil
	}
	v, err := r.d.ReadValue()
	if err != nil {
		r.fail(err)
		return nil
	}
	return v
}

// scalar reads a value of one kind.
func (r *reader) scalar(kind jsontext.Kind, what string) (jsontext.Value, bool) {
	v := r.raw()
	if v != nil && v.Kind() != kind {
		r.bad("must be %s", what)
		return nil, false
	}
	return v, v != nil
}

// object reads an object, and has member read or refuse each value; r.name says which it is.
func (r *reader) object(member func()) bool {
	if !r.enter('{', "an object") {
		return false
	}
	for !r.over && r.d.PeekKind() == '"' {
		name := r.raw()
		if name == nil {
			return false // it is there twice, or broken
		}
		if r.name = name[1 : len(name)-1]; bytes.IndexByte(name, '\\') >= 0 {
			r.name, _ = jsontext.AppendUnquote(nil, name)
		}
		member()
	}
	return r.delimiter()
}

// array reads an array of up to most elements, and has element read each.
func (r *reader) array(most int, element func(i int)) bool {
	if !r.enter('[', "an array") {
		return false
	}
	n := 0
	for ; !r.over && r.d.PeekKind() != ']'; n++ {
		if n < most {
			element(n)
		} else {
			r.raw()
		}
	}
	if r.delimiter(); n > most {
		r.bad("must have at most %d entries, not %d", most, n)
	}
	return !r.over
}

func (r *reader) enter(kind jsontext.Kind, what string) bool {
	if r.over {
		return false
	}
	if got := r.d.PeekKind(); got != kind && got > 0 && got != '}' && got != ']' {
		r.raw()
		r.bad("must be %s", what)
		return false
	}
	return r.delimiter()
}

// delimiter reads the bracket that comes next.
func (r *reader) delimiter() bool {
	if r.over {
		return false
	}
	if _, err := r.d.ReadToken(); err != nil {
		r.fail(err)
	}
	return !r.over
}

// unknown refuses a member that is not known.
func (r *reader) unknown() {
	if r.raw() != nil {
		r.bad("is not a known field")
	}
}

// text reads a string of up to most characters; ok: it is one.
func (r *reader) text(most int) (text string, ok bool) {
	v, ok := r.scalar('"', "a string")
	if !ok {
		return "", false
	}
	var s string
	if bytes.IndexByte(v, '\\') < 0 {
		s = string(v[1 : len(v)-1])
	} else {
		b, _ := jsontext.AppendUnquote(nil, v) // the decoder has found it sound
		s = string(b)
	}
	if len(s) > most && utf8.RuneCountInString(s) > most {
		r.bad("must have at most %d characters", most)
	}
	return s, true
}

// label reads a string of 1 to most characters, none of them a control character.
func (r *reader) label(most int) string {
	s, ok := r.text(most)
	if !ok {
		return ""
	}
	r.note(checkLabel(s))
	return s
}

// note is bad, where there may be nothing wrong.
func (r *reader) note(wrong string) {
	if wrong != "" {
		r.bad("%s", wrong)
	}
}

func checkLabel(s string) string {
	if s == "" {
		return "must not be empty"
	}
	if strings.IndexFunc(s, unicode.IsControl) >= 0 {
		return "must not contain control characters"
	}
	return ""
}

// integer reads a whole number, written without an exponent. A fraction of zeros is one for JSON Schema, too.
func (r *reader) integer(least, most int64) int64 {
	v, ok := r.scalar('0', "an integer")
	if !ok {
		return 0
	}
	whole, fraction, fractional := strings.Cut(string(v), ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrSyntax), fractional && strings.Trim(fraction, "0") != "":
		r.bad("must be an integer")
	case err != nil || n < least || n > most:
		r.bad("must be from %d to %d", least, most)
	}
	return n
}

func (r *reader) number() float64 {
	v, ok := r.scalar('0', "a number")
	if !ok {
		return 0
	}
	f, _ := strconv.ParseFloat(string(v), 64) // scan has refused what would overflow
	return f
}

func (r *reader) boolean() bool {
	v := r.raw()
	if k := v.Kind(); v != nil && k != 't' && k != 'f' {
		r.bad("must be true or false")
	}
	return string(v) == "true"
}

// null reads a null, if one comes next.
func (r *reader) null() bool {
	if r.over || r.d.PeekKind() != 'n' {
		return false
	}
	return r.raw() != nil
}
