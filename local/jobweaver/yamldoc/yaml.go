// Package yamldoc writes JSON as YAML.
package yamldoc

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"
)

// Write prints a response as YAML. Numbers and the order of keys stay as in the response.
func Write(w io.Writer, raw []byte) error {
	y := writer{in: jsontext.NewDecoder(strings.NewReader(string(raw)), jsontext.AllowDuplicateNames(true))}
	token, err := y.in.ReadToken()
	if err == nil {
		err = y.value(token, 0, false)
	}
	if err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	_, err = fmt.Fprintln(w, strings.TrimPrefix(y.out.String(), "\n"))
	return err
}

// writer converts JSON into YAML in block style, token by token.
type writer struct {
	in  *jsontext.Decoder
	out strings.Builder
}

// value writes one value. inList means that the value follows a dash: its first line is on the line of the dash.
func (y *writer) value(token jsontext.Token, depth int, inList bool) error {
	kind, text := token.Kind(), token.String()
	if kind == '{' || kind == '[' {
		return y.collection(kind, depth, inList)
	}
	if kind == '"' {
		text = quoted(text)
	} else if kind == '0' {
		text = number(text)
	}
	y.out.WriteString(" " + text)
	return nil
}

func (y *writer) collection(kind jsontext.Kind, depth int, inList bool) error {
	end := map[jsontext.Kind]jsontext.Kind{'{': '}', '[': ']'}[kind]
	if y.in.PeekKind() == end {
		y.out.WriteString(" " + kind.String() + end.String())
		_, err := y.in.ReadToken()
		return err
	}
	for first := true; y.in.PeekKind() != end; first = false {
		if first && inList {
			y.out.WriteString(" ")
		} else {
			y.out.WriteString("\n" + strings.Repeat("  ", depth))
		}
		token, err := y.in.ReadToken()
		if err != nil {
			return err
		}
		if kind == '{' {
			y.out.WriteString(quoted(token.String()) + ":")
			if token, err = y.in.ReadToken(); err != nil {
				return err
			}
		} else {
			y.out.WriteString("-")
		}
		if err := y.value(token, depth+1, kind == '['); err != nil {
			return err
		}
	}
	_, err := y.in.ReadToken()
	return err
}

// number writes a number as in the response, except that 1e3 becomes 1.0e+3: without a point and a sign in the
// exponent, parsers of YAML 1.1 (PyYAML) and some of YAML 1.2 take such a number for text.
func number(text string) string {
	mantissa, exponent, has := strings.Cut(strings.ToLower(text), "e")
	if !has {
		return text
	}
	if !strings.Contains(mantissa, ".") {
		mantissa += ".0"
	}
	if !strings.HasPrefix(exponent, "-") && !strings.HasPrefix(exponent, "+") {
		exponent = "+" + exponent
	}
	return mantissa + "e" + exponent
}

var (
	plain    = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_./-]*$`)
	reserved = regexp.MustCompile(`^(?i:true|false|null|yes|no|on|off|y|n)$`)
)

// quoted returns a text as YAML, in quotes if it could be parsed as something else.
func quoted(text string) string {
	if plain.MatchString(text) && !reserved.MatchString(text) {
		return text
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case r == '\n':
			b.WriteString(`\n`)
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String() + `"`
}
