package jobspec

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/jobweaver/jobweaver/shared/retrypolicy"
)

// The check functions say what is wrong with a value, or "".

func checkJobType(s string) string {
	ok := len(s) <= MaxJobType && s != "" && isLetter(s[0])
	for i := 0; ok && i < len(s); i++ {
		c := s[i]
		ok = isLetter(c) || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-'
	}
	if !ok {
		return fmt.Sprintf("must be a letter, then letters, digits, '.', '_' or '-', "+
			"at most %d together", MaxJobType)
	}
	return ""
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func checkQueue(s string) string {
	ok := len(s) <= MaxQueue && s != ""
	for i := 0; ok && i < len(s); i++ {
		c := s[i]
		ok = c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-'
	}
	if !ok {
		return fmt.Sprintf("must be 1 to %d small letters, digits or '-'", MaxQueue)
	}
	return ""
}

// checkCallbackURL leaves the rest to the rules of the installation.
func checkCallbackURL(s string) string {
	if s == "" || len(s) > MaxCallbackURL || !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) {
		return fmt.Sprintf("must be a URL of at most %d bytes", MaxCallbackURL)
	}
	return ""
}

// parseInstant cuts to microseconds, which is what PostgreSQL keeps.
func parseInstant(s string) (t time.Time, wrong string) {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil || !isRFC3339(s) {
		return t, "must be an RFC 3339 instant, as 2026-11-22T08:00:00Z"
	}
	switch t = t.UTC().Truncate(time.Microsecond); {
	case t.Year() < 1970:
		return t, "must not be before 1970"
	case t.Year() > 9999: // in UTC, of which JSON knows no instant
		return t, "must not be after 9999"
	}
	return t, ""
}

// isRFC3339 refuses what time.Parse takes beyond the standard: T8:00:00, 08:00:00,5, +25:00, +01:99.
func isRFC3339(s string) bool {
	if s[len("2006-01-02T15")] != ':' || strings.Contains(s, ",") {
		return false
	}
	zone := s[len(s)-len("07:00"):]
	return s[len(s)-1] == 'Z' || zone <= "23:59" && zone[len("07:"):] <= "59"
}

// policy reads a retry policy; nil where it says what holds anyway.
func (r *reader) policy() *retrypolicy.Policy {
	var p retrypolicy.Policy
	var given []string
	before := len(r.problems)
	ok := r.object(func() {
		name := string(r.name)
		given = append(given, name)
		switch name {
		case "type":
			p.Type, _ = r.text(MaxKey)
		case "baseMs":
			p.BaseMs = r.integer(0, retrypolicy.MaxDelayMs)
		case "capMs":
			p.CapMs = r.integer(0, retrypolicy.MaxDelayMs)
		case "delayMs":
			p.DelayMs = r.integer(0, retrypolicy.MaxDelayMs)
		case "delaysMs":
			r.array(retrypolicy.MaxDelays, func(int) {
				p.DelaysMs = append(p.DelaysMs, r.integer(0, retrypolicy.MaxDelayMs))
			})
		case "jitter":
			p.Jitter = r.number()
		default:
			r.unknown()
		}
	})
	if !ok || len(r.problems) > before {
		return nil
	}
	return r.completePolicy(p, given)
}

// completePolicy fills in what an exponential policy leaves out, and refuses what does not fit its
// type, even where it is 0.
func (r *reader) completePolicy(p retrypolicy.Policy, given []string) *retrypolicy.Policy {
	has := func(name string) bool { return slices.Contains(given, name) }
	if !has("type") {
		r.badIn("type", "is required")
		return nil
	}
	if p.Type == retrypolicy.Exponential && !has("baseMs") {
		p.BaseMs = retrypolicy.Default.BaseMs
	}
	if p.Type == retrypolicy.Exponential && !has("capMs") {
		p.CapMs = retrypolicy.Default.CapMs
	}
	if p.Type == retrypolicy.Fixed && !has("delayMs") {
		r.badIn("delayMs", "is required")
	}
	wrong := p.Validate()
	for _, w := range wrong {
		r.badAt(r.path()+"."+w.Path, "%s", w.Message)
	}
	for _, f := range policyFields {
		if len(wrong) == 0 && has(f.name) && f.owner != p.Type {
			r.badIn(f.name, "does not belong to a policy of type %s", p.Type)
		}
	}
	if p.Equal(nil) {
		return nil
	}
	return &p
}

var policyFields = [...]struct{ name, owner string }{
	{"baseMs", retrypolicy.Exponential}, {"capMs", retrypolicy.Exponential},
	{"delayMs", retrypolicy.Fixed}, {"delaysMs", retrypolicy.List},
}
