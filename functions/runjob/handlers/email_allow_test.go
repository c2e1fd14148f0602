package handlers_test

import (
	"strings"
	"testing"
)

// A job must not send mail in the name of the installation's domain beyond the allowed addresses.
func TestOnlyAllowedSendersAndRecipientsAreMailed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		senders, to []string
		payload     object
		wrong       string
	}{
		"the default sender":              {nil, nil, object{}, ""},
		"the default sender, named":       {nil, nil, object{"from": "Any Name <SHOP@example.com>"}, ""},
		"another sender, by default":      {nil, nil, object{"from": "ceo@example.com"}, "payload.from"},
		"another Reply-To, by default":    {nil, nil, object{"replyTo": "eve@example.org"}, "payload.from"},
		"a sender of a domain":            {[]string{"@example.com"}, nil, object{"from": "ceo@Example.com", "replyTo": "x@example.com"}, ""},
		"a sender of a domain beneath it": {[]string{"@example.com"}, nil, object{"from": "ceo@x.example.com"}, "payload.from"},
		"SMTP_FROM, which is not allowed": {[]string{"a@b.example"}, nil, object{}, "payload.from"},
		"recipients that are allowed":     {nil, []string{"@example.org", "b@example.com"}, object{"cc": []string{"b@example.com"}}, ""},
		"a hidden one that is not":        {nil, []string{"@example.org"}, object{"bcc": []string{"b@example.com"}}, "payload.to"},
	} {
		o := &office{}
		cfg := o.open(t, "127.0.0.1:0", nil, nil)
		cfg.Senders, cfg.To = c.senders, c.to
		payload := object{"to": []string{"ada@example.org"}, "subject": "x", "text": "x"}
		for key, value := range c.payload {
			payload[key] = value
		}
		_, _, err := mail(t.Context(), t, cfg, payload)
		if (err != nil) != (c.wrong != "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%s: %v", name, err)
		}
		if sent := len(o.got()); (sent == 1) != (c.wrong == "") {
			t.Errorf("%s: sent %d times", name, sent)
		}
	}
}
