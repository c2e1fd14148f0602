package strictjson

import (
	"strings"
	"time"
)

// Millis reads a duration in milliseconds.
func (r *Reader) Millis(least, most time.Duration) time.Duration {
	return time.Duration(r.Integer(least.Milliseconds(), most.Milliseconds())) * time.Millisecond
}

// Duration reads a duration in Go's format: 30s or 500ms.
func (r *Reader) Duration(most time.Duration) time.Duration {
	text, ok := r.Text(maxWord)
	if !ok {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > most {
		r.Bad("must be a duration from 0s to %s, as 30s or 500ms", most)
		return 0
	}
	return d
}

// Instant reads an instant as ParseInstant does; nil if the value is not a string.
func (r *Reader) Instant() *time.Time {
	s, ok := r.Text(anyText)
	if !ok {
		return nil
	}
	t, wrong := ParseInstant(s)
	r.Note(wrong)
	return &t
}

// ParseInstant reads an RFC 3339 instant, and returns what is wrong with it, or "". It truncates to microseconds, the
// precision of PostgreSQL.
func ParseInstant(s string) (t time.Time, wrong string) {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil || !isRFC3339(s) {
		return t, "must be an RFC 3339 instant, as 2026-11-22T08:00:00Z"
	}
	switch t = t.UTC().Truncate(time.Microsecond); {
	case t.Year() < 1970:
		return t, "must not be before 1970"
	case t.Year() > 9999: // in UTC; RFC 3339 has only four digits for the year
		return t, "must not be after 9999"
	}
	return t, ""
}

// isRFC3339 refuses texts that time.Parse accepts although the standard does not: T8:00:00, 08:00:00,5, +25:00, +01:99.
func isRFC3339(s string) bool {
	if s[len("2006-01-02T15")] != ':' || strings.Contains(s, ",") {
		return false
	}
	zone := s[len(s)-len("07:00"):]
	return s[len(s)-1] == 'Z' || zone <= "23:59" && zone[len("07:"):] <= "59"
}
