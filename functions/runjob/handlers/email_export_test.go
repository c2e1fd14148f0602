package handlers

import "time"

// WriteEmail returns the message of a payload of EMAIL, and its recipients.
func WriteEmail(payload []byte, id string) (raw []byte, recipients []string, err error) {
	m, err := parseEmail(payload)
	if err != nil {
		return nil, nil, err
	}
	if m.from == nil {
		m.from = &address{local: "shop", domain: "example.com"}
	}
	for _, a := range m.recipients() {
		recipients = append(recipients, a.String())
	}
	raw, err = m.message(id, time.Now())
	return raw, recipients, err
}
