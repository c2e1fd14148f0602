package jobspec

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// scan looks for what is good JSON but what a store or another language would choke on, anywhere in
// the document: nesting below MaxDepth, U+0000 written as an escape (PostgreSQL has no such
// character), and numbers that no double can hold. It returns where that is, or -1. Bad JSON is not
// its business.
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

// locate returns the path of what stands at the offset.
func locate(doc []byte, prefix string, offset int) string {
	d := jsontext.NewDecoder(bytes.NewBuffer(doc))
	for d.InputOffset() <= int64(offset) {
		if _, err := d.ReadToken(); err != nil {
			break
		}
	}
	return pathOf(prefix, d.StackPointer())
}

const (
	maxPath = 256 // bytes of a path in an answer
	maxName = 64  // bytes of one name in it
)

// pathOf writes a JSON pointer as people write it: /steps/3/url as steps[3].url. Names are the
// client's, and may be anything: odd ones are quoted, long ones cut.
func pathOf(prefix string, pointer jsontext.Pointer) string {
	path := prefix
	for name := range pointer.Tokens() {
		if len(path) > maxPath {
			return path + "…"
		}
		path = join(path, name)
	}
	return path
}

func join(path, name string) string {
	if len(name) > maxName {
		name = strings.ToValidUTF8(name[:maxName], "") + "…"
	}
	switch {
	case isIndex(name):
		return path + "[" + name + "]"
	case !isPlain(name):
		return path + "[" + strconv.Quote(name) + "]"
	case path == "":
		return name
	default:
		return path + "." + name
	}
}

func isIndex(name string) bool {
	_, err := strconv.ParseUint(name, 10, 32)
	return err == nil
}

func isPlain(name string) bool {
	for _, c := range name {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
			c == '_' || c == '-' || c == '…') {
			return false
		}
	}
	return name != ""
}
