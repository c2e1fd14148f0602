package strictjson

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Limits of a document.
const (
	MaxDepth       = 100   // the most levels of nested objects and arrays, including the root
	MaxNumberChars = 1_000 // the most characters of one number as written
)

// Scan looks anywhere in the document for valid JSON that a store or another language cannot accept: nesting below
// MaxDepth, U+0000 written as an escape (PostgreSQL has no such character), and numbers that no double can hold. The
// result has at most one problem. Scan ignores broken JSON, which a Reader finds.
func Scan(doc []byte, prefix string) Problems {
	offset, message := scan(doc)
	if offset < 0 {
		return nil
	}
	return Problems{{Path: locate(doc, prefix, offset), Message: message}}
}

// scan returns the offset of the first such problem, or -1.
func scan(doc []byte) (offset int, message string) {
	depth := 0
	for i := 0; i < len(doc); i++ {
		switch c := doc[i]; {
		case c == '"':
			end, nul := scanString(doc, i+1)
			if nul {
				return end, `must not contain the character \u0000`
			}
			i = end
		case c == '{' || c == '[':
			if depth++; depth > MaxDepth {
				return i, fmt.Sprintf("is nested more than %d levels deep", MaxDepth)
			}
		case c == '}' || c == ']':
			depth--
		case c == '-' || c >= '0' && c <= '9':
			end := i + 1
			for end < len(doc) && isNumberByte(doc[end]) {
				end++
			}
			if !soundNumber(doc[i:end]) {
				return i, fmt.Sprintf("must be a number that a double can hold, of at most %d characters",
					MaxNumberChars)
			}
			i = end - 1
		}
	}
	return -1, ""
}

// scanString returns the offset of the string's closing quote, or of a \u0000 in it.
func scanString(doc []byte, from int) (end int, nul bool) {
	for i := from; i < len(doc); i++ {
		switch doc[i] {
		case '"':
			return i, false
		case '\\':
			if bytes.HasPrefix(doc[i+1:], []byte("u0000")) {
				return i, true
			}
			i++
		}
	}
	return len(doc), false
}

func isNumberByte(c byte) bool {
	return c >= '0' && c <= '9' || c == '.' || c == 'e' || c == 'E' || c == '+' || c == '-'
}

// soundNumber reports whether lit, if it is a number at all, neither overflows a double nor vanishes in it.
func soundNumber(lit []byte) bool {
	exponent := bytes.IndexAny(lit, "eE")
	if exponent < 0 && len(lit) <= 300 {
		return true
	}
	if len(lit) > MaxNumberChars || exponent >= 0 && len(lit)-exponent > len("e+999") {
		return false
	}
	f, err := strconv.ParseFloat(string(lit), 64)
	if err != nil {
		return !errors.Is(err, strconv.ErrRange)
	}
	mantissa := lit
	if exponent >= 0 {
		mantissa = lit[:exponent]
	}
	return f != 0 || !bytes.ContainsAny(mantissa, "123456789")
}

// locate returns the path of the value at the offset.
func locate(doc []byte, prefix string, offset int) string {
	d := jsontext.NewDecoder(bytes.NewBuffer(doc))
	for d.InputOffset() <= int64(offset) {
		if _, err := d.ReadToken(); err != nil {
			break
		}
	}
	return Path(prefix, d.StackPointer().Tokens())
}
