package cli

import (
	"strings"
	"time"
	"unicode"
)

// Printable removes control characters from a text of other origin, because they could control the user's terminal.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		if !unicode.IsPrint(r) {
			return '\uFFFD'
		}
		return r
	}, text)
}

// Line returns a text on one line, without control characters.
func Line(text string) string { return strings.ReplaceAll(Printable(text), "\n", " ") }

// DashIfEmpty returns a text, or a dash.
func DashIfEmpty(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// At prints an instant in the time zone of this machine, with the zone.
func At(instant *time.Time) string { return instant.Local().Format("2006-01-02 15:04:05.000 -07:00") }
