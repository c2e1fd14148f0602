package cli

import (
	"strings"
	"time"
	"unicode"
)

// Printable takes control characters out of a text that others wrote, or it could draw on our terminal.
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

// Line is a text on one line, without control characters.
func Line(text string) string { return strings.ReplaceAll(Printable(text), "\n", " ") }

// DashIfEmpty is a text, or a dash.
func DashIfEmpty(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// At is an instant in the zone of this machine, which it names.
func At(instant *time.Time) string { return instant.Local().Format("2006-01-02 15:04:05.000 -07:00") }
