package handlers

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

var (
	errSender    = errors.New("payload.from and payload.replyTo: only senders of SMTP_ALLOW_FROM may be named here")
	errRecipient = errors.New("payload.to, cc and bcc: only recipients of SMTP_ALLOW_TO may be named here")
)

// allows reports whether the operator permits the message's sender and recipients. A mail relay signs everything that
// it receives from here for its domain.
func (e *Email) allows(m *email) error {
	for _, sender := range []*address{m.from, m.replyTo} {
		if sender != nil && !sender.in(e.cfg.Senders) {
			return errSender
		}
	}
	if slices.ContainsFunc(m.recipients(), func(a address) bool { return !a.in(e.cfg.To) }) {
		return errRecipient
	}
	return nil
}

// parseAllowed returns a list of addresses and @domains in the form of parseAddress, so that in can compare them.
func parseAllowed(list []string) ([]string, error) {
	parsed := make([]string, len(list))
	for i, text := range list {
		text = strings.TrimSpace(text)
		whole := text
		if strings.HasPrefix(text, "@") {
			whole = "any" + text
		}
		a, err := parseAddress(whole)
		switch {
		case text == "*":
			parsed[i] = text
		case err != nil || a.name != "":
			return nil, fmt.Errorf("%q is neither an address nor an @domain", text)
		case whole != text:
			parsed[i] = "@" + a.domain
		default:
			parsed[i] = a.String()
		}
	}
	return parsed, nil
}

// in reports whether a list from parseAllowed permits the address. An empty list permits all. Case does not count, but
// only within ASCII: EqualFold would treat ſhop as shop, which is another mailbox.
func (a address) in(list []string) bool {
	return len(list) == 0 || slices.ContainsFunc(list, func(text string) bool {
		return text == "*" || text == "@"+a.domain || isASCII(text) == a.ascii() && strings.EqualFold(text, a.String())
	})
}
