package jobspec

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/retrypolicy"
)

// WrongJobType returns what is wrong with a job type's name, or "".
func WrongJobType(s string) string {
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

// WrongErrorCode returns what is wrong with an error code, or "".
func WrongErrorCode(s string) string {
	if wrong := WrongJobType(s); wrong != "" || len(s) > MaxErrorCode {
		return fmt.Sprintf("must be a letter, then letters, digits, '.', '_' or '-', "+
			"at most %d together", MaxErrorCode)
	}
	return ""
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// WrongQueue returns what is wrong with a queue's name, or "".
func WrongQueue(s string) string {
	ok := len(s) <= MaxQueue && s != ""
	for i := 0; ok && i < len(s); i++ {
		c := s[i]
		ok = c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-'
	}
	switch {
	case !ok:
		return fmt.Sprintf("must be 1 to %d small letters, digits or '-'", MaxQueue)
	case s == jobevent.FanOutQueue:
		return "is the queue of fan-outs, whose jobs no worker runs"
	}
	return ""
}

// checkCallbackURL returns what is wrong with a callbackUrl in any installation, or "". Rules has the rest.
func checkCallbackURL(s string) string {
	if s == "" || len(s) > MaxCallbackURL || !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) {
		return fmt.Sprintf("must be a URL of at most %d bytes", MaxCallbackURL)
	}
	return ""
}

// policy reads a retry policy; nil where it equals the default.
func (r reader) policy() *retrypolicy.Policy {
	var p retrypolicy.Policy
	var given []string
	before := len(r.Problems)
	ok := r.Object(func() {
		name := string(r.Name)
		given = append(given, name)
		switch name {
		case "type":
			p.Type, _ = r.Text(MaxKey)
		case "baseMs":
			p.BaseMs = r.Integer(0, retrypolicy.MaxDelayMs)
		case "capMs":
			p.CapMs = r.Integer(0, retrypolicy.MaxDelayMs)
		case "delayMs":
			p.DelayMs = r.Integer(0, retrypolicy.MaxDelayMs)
		case "delaysMs":
			r.Array(retrypolicy.MaxDelays, func(int) {
				p.DelaysMs = append(p.DelaysMs, r.Integer(0, retrypolicy.MaxDelayMs))
			})
		case "jitter":
			p.Jitter = r.Number()
		default:
			r.Unknown()
		}
	})
	if !ok || len(r.Problems) > before {
		return nil
	}
	return r.completePolicy(p, given)
}

// completePolicy fills in what an exponential policy leaves out, and refuses members of another type of policy, even
// those that are 0.
func (r reader) completePolicy(p retrypolicy.Policy, given []string) *retrypolicy.Policy {
	has := func(name string) bool { return slices.Contains(given, name) }
	if !has("type") {
		r.BadIn("type", "is required")
		return nil
	}
	if p.Type == retrypolicy.Exponential && !has("baseMs") {
		p.BaseMs = retrypolicy.Default.BaseMs
	}
	if p.Type == retrypolicy.Exponential && !has("capMs") {
		p.CapMs = retrypolicy.Default.CapMs
	}
	if p.Type == retrypolicy.Fixed && !has("delayMs") {
		r.BadIn("delayMs", "is required")
	}
	wrong := p.Validate()
	for _, w := range wrong {
		r.BadAt(r.Path()+"."+w.Path, "%s", w.Message)
	}
	for _, f := range policyFields {
		if len(wrong) == 0 && has(f.name) && f.owner != p.Type {
			r.BadIn(f.name, "does not belong to a policy of type %s", p.Type)
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
