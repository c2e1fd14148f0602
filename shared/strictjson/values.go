package strictjson

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
)

// anyText is the limit of a string whose check has a lower limit.
const anyText = 512 << 10

// maxWord is the limit of a string with few possible values, or with a fixed form.
const maxWord = 255

// Text reads a string of up to most characters. ok is false if the value is not such a string.
func (r *Reader) Text(most int) (text string, ok bool) {
	v, ok := r.Scalar('"', "a string")
	if !ok {
		return "", false
	}
	var s string
	if bytes.IndexByte(v, '\\') < 0 {
		s = string(v[1 : len(v)-1])
	} else {
		b, _ := jsontext.AppendUnquote(nil, v) // cannot fail: the decoder has accepted the string
		s = string(b)
	}
	if len(s) > most && utf8.RuneCountInString(s) > most {
		r.Bad("must have at most %d characters", most)
	}
	return s, true
}

// Label reads a string of 1 to most characters, none of them a control character.
func (r *Reader) Label(most int) string {
	s, ok := r.Text(most)
	if !ok {
		return ""
	}
	r.Note(CheckLabel(s))
	return s
}

// CheckLabel returns what is wrong with a label whose length has been checked, or "".
func CheckLabel(s string) string {
	if s == "" {
		return "must not be empty"
	}
	if strings.IndexFunc(s, unicode.IsControl) >= 0 {
		return "must not contain control characters"
	}
	return ""
}

// Integer reads a whole number, written without an exponent. A number with a fraction of zeros counts as an integer, as
// in JSON Schema.
func (r *Reader) Integer(least, most int64) int64 {
	v, ok := r.Scalar('0', "an integer")
	if !ok {
		return 0
	}
	whole, fraction, fractional := strings.Cut(string(v), ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrSyntax), fractional && strings.Trim(fraction, "0") != "":
		r.Bad("must be an integer")
	case err != nil || n < least || n > most:
		r.Bad("must be from %d to %d", least, most)
	}
	return n
}

// Number reads any number.
func (r *Reader) Number() float64 {
	v, ok := r.Scalar('0', "a number")
	if !ok {
		return 0
	}
	f, _ := strconv.ParseFloat(string(v), 64) // Scan has refused numbers that would overflow
	return f
}

// Boolean reads true or false.
func (r *Reader) Boolean() bool {
	v := r.Raw()
	if k := v.Kind(); v != nil && k != 't' && k != 'f' {
		r.Bad("must be true or false")
	}
	return string(v) == "true"
}

// Null reads a null if the next value is one.
func (r *Reader) Null() bool {
	return r.Peek() == 'n' && r.Raw() != nil
}

// Checked reads a string and notes the problem that check returns, unless it is empty.
func (r *Reader) Checked(check func(string) string) string {
	s, ok := r.Text(anyText)
	if ok {
		r.Note(check(s))
	}
	return s
}

// OneOf reads a string that must be one of some. It returns an empty text for any other.
func (r *Reader) OneOf(some []string) string {
	s, ok := r.Text(maxWord)
	if ok && !slices.Contains(some, s) {
		r.Bad("must be one of %s", strings.Join(some, ", "))
		return ""
	}
	return s
}

// Names reads an array of at most most names, no two of which are equal. It calls read for each.
func (r *Reader) Names(most int, read func() string) []string {
	names := []string{}
	r.Array(most, func(int) {
		name := read()
		if slices.Contains(names, name) {
			r.Bad("is there twice")
			return
		}
		names = append(names, name)
	})
	return names
}

// UUID reads a UUID in its usual form.
func (r *Reader) UUID() uuid.UUID {
	s, ok := r.Text(maxWord)
	if !ok {
		return uuid.Nil
	}
	id, err := uuid.Parse(s)
	if err != nil || len(s) != len(uuid.Nil.String()) {
		r.Bad("must be a UUID")
		return uuid.Nil
	}
	return id
}
