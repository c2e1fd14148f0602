package handlers

import (
	"strings"
	"testing"
)

// FuzzAllowedAddresses checks that an entry of SMTP_ALLOW_FROM or SMTP_ALLOW_TO permits itself and no address of
// another domain.
func FuzzAllowedAddresses(f *testing.F) {
	for _, text := range []string{
		"*", " *", "@example.com", " ada@Example.com", "@例え.example", "Ada <ada@example.com>", "<ada@example.com>", "@", "a@b@c", "ada", "@a@b", "SHOP@x", "shop@x",
	} {
		f.Add(text, "ada@example.com")
		f.Add(text, "ſhop@x")
	}
	f.Fuzz(func(t *testing.T, text, mailbox string) {
		e, err := NewEmail(EmailConfig{To: []string{text}})
		if err != nil {
			if !strings.HasPrefix(err.Error(), "SMTP_ALLOW_TO: ") {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		own := strings.TrimSpace(text)
		if own == "*" {
			return
		}
		domain := strings.HasPrefix(own, "@")
		if domain {
			own = "someone" + own
		}
		self, err := parseAddress(own)
		if err != nil || !self.in(e.cfg.To) {
			t.Fatalf("%q permits no address: %v", text, err)
		}
		self.domain = "other." + self.domain
		if self.in(e.cfg.To) {
			t.Errorf("%q allows %s", text, self)
		}
		a, err := parseAddress(mailbox)
		if err != nil || !a.in(e.cfg.To) {
			return
		}
		self.domain = strings.TrimPrefix(self.domain, "other.")
		if a.domain != self.domain || !domain && (a.ascii() != self.ascii() || !strings.EqualFold(a.local, self.local)) {
			t.Errorf("%q allows %s", text, a)
		}
	})
}
