// Package strictjson reads untrusted JSON value by value, and collects all problems, each with the path of its value.
package strictjson

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// Reader reads one JSON document, value by value, and notes every problem with its path. After a syntax error, or
// MaxProblems problems, it finds no further values.
type Reader struct {
	Problems
	d      jsontext.Decoder
	buf    bytes.Buffer
	prefix string // path of the document's root
	Name   []byte // in an object: the name of the member to be read
	over   bool
}

var readers = sync.Pool{New: func() any { return new(Reader) }}

// NewReader reads doc strictly: no duplicate names, no bad UTF-8, no lone surrogates.
func NewReader(doc []byte, prefix string, options ...jsontext.Options) *Reader {
	r := readers.Get().(*Reader)
	r.Problems, r.buf, r.prefix, r.over = nil, *bytes.NewBuffer(doc), prefix, false
	r.d.Reset(&r.buf, options...)
	return r
}

// Close ends the document, and returns what is wrong with it. r must not be used afterwards.
func (r *Reader) Close() Problems {
	if !r.over {
		if _, err := r.d.ReadToken(); err == nil {
			r.Add(r.prefix, "is followed by more JSON")
		} else if !errors.Is(err, io.EOF) {
			r.fail(err)
		}
	}
	p := r.Problems
	// A reader that waits in the pool must not keep the document in memory.
	r.Problems, r.Name, r.buf = nil, nil, bytes.Buffer{}
	r.d.Reset(&r.buf)
	readers.Put(r)
	return p
}

// Path returns the path of the value read last.
func (r *Reader) Path() string { return Path(r.prefix, r.d.StackPointer().Tokens()) }

// Bad notes a problem with the value read last.
func (r *Reader) Bad(format string, args ...any) {
	r.BadAt(r.Path(), format, args...)
}

// BadIn notes a problem with a member of the object that was read last.
func (r *Reader) BadIn(name, format string, args ...any) {
	r.BadAt(Join(r.Path(), name), format, args...)
}

// BadAt notes a problem with the value at a path.
func (r *Reader) BadAt(path, format string, args ...any) {
	if !r.over {
		r.Add(path, fmt.Sprintf(format, args...))
		r.over = r.Full()
	}
}

// Note is Bad for the result of a check, which is empty if nothing is wrong.
func (r *Reader) Note(wrong string) {
	if wrong != "" {
		r.Bad("%s", wrong)
	}
}

func (r *Reader) fail(err error) {
	var syntax *jsontext.SyntacticError
	switch {
	case r.over:
	case errors.As(err, &syntax) && !errors.Is(err, io.ErrUnexpectedEOF):
		why := strings.TrimPrefix(syntax.Err.Error(), "jsontext: ")
		if len(why) > maxPath {
			why = strings.ToValidUTF8(why[:maxPath], "") + "…"
		}
		r.BadAt(Path(r.prefix, syntax.JSONPointer.Tokens()), "is not valid JSON: %s, at byte %d",
			why, syntax.ByteOffset)
	case errors.Is(err, io.EOF):
		r.BadAt(r.prefix, "must not be empty")
	default:
		r.BadAt(r.prefix, "is not valid JSON: it ends too early")
	}
	r.over = true
}

// Peek returns the kind of the next value; 0 at the end of the document.
func (r *Reader) Peek() jsontext.Kind {
	if r.over {
		return 0
	}
	return r.d.PeekKind()
}

// Raw reads any value; nil at the end of the document.
func (r *Reader) Raw() jsontext.Value {
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

// Scalar reads a value of one kind.
func (r *Reader) Scalar(kind jsontext.Kind, what string) (jsontext.Value, bool) {
	v := r.Raw()
	if v != nil && v.Kind() != kind {
		r.Bad("must be %s", what)
		return nil, false
	}
	return v, v != nil
}

// Object reads an object. It calls member for each value, to read or refuse it; r.Name is the value's name.
func (r *Reader) Object(member func()) bool {
	if !r.enter('{', "an object") {
		return false
	}
	for !r.over && r.d.PeekKind() == '"' {
		name := r.Raw()
		if name == nil {
			return false // the name is repeated or broken
		}
		if r.Name = name[1 : len(name)-1]; bytes.IndexByte(name, '\\') >= 0 {
			r.Name, _ = jsontext.AppendUnquote(nil, name)
		}
		member()
	}
	return r.delimiter()
}

// Array reads an array of up to most elements. It calls element to read each of them.
func (r *Reader) Array(most int, element func(i int)) bool {
	if !r.enter('[', "an array") {
		return false
	}
	n := 0
	for ; !r.over && r.d.PeekKind() != ']'; n++ {
		if n < most {
			element(n)
		} else {
			r.Raw()
		}
	}
	if r.delimiter(); n > most {
		r.Bad("must have at most %d entries, not %d", most, n)
	}
	return !r.over
}

func (r *Reader) enter(kind jsontext.Kind, what string) bool {
	if r.over {
		return false
	}
	if got := r.d.PeekKind(); got != kind && got > 0 && got != '}' && got != ']' {
		r.Raw()
		r.Bad("must be %s", what)
		return false
	}
	return r.delimiter()
}

// delimiter reads the next bracket.
func (r *Reader) delimiter() bool {
	if r.over {
		return false
	}
	if _, err := r.d.ReadToken(); err != nil {
		r.fail(err)
	}
	return !r.over
}

// Unknown refuses an unknown member.
func (r *Reader) Unknown() { r.UnknownBut("") }

// UnknownBut is Unknown for a member that has another name here; empty: it has none.
func (r *Reader) UnknownBut(other string) {
	if r.Raw() != nil {
		r.Bad("is not a known field%s", ItIs(other))
	}
}

// ItIs is the end of a message about an unknown name that names the right one; empty: there is none.
func ItIs(name string) string {
	if name == "" {
		return ""
	}
	return "; it is " + name + " here"
}
