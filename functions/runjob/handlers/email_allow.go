package handlers

import (
	"errors"
	"slices"
	"strings"
)

var (
	errSender    = errors.New("payload.from and payload.replyTo: only senders of SMTP_ALLOW_FROM may be named here")
	errRecipient = errors.New("payload.to, cc and bcc: only recipients of SMTP_ALLOW_TO may be named here")
)

// allows says whether the operator lets the message be sent as its sender to its recipients. A relay signs for its
// domain whatever comes from here.
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

// in says whether an address is one of a list of addresses and @domains. An empty list has all.
func (a address) in(list []string) bool {
	return len(list) == 0 || slices.ContainsFunc(list, func(text string) bool {
		return text == "*" || strings.EqualFold(text, a.String()) || strings.EqualFold(text, "@"+a.domain)
	})
}
