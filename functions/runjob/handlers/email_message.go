package handlers

import (
	"bytes"
	"mime"
	"net/mail"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"
)

// newlines makes pairs of all line breaks: mime/quotedprintable loses one that follows an escaped character after a
// lone CR.
var newlines = strings.NewReplacer("\r\n", "\r\n", "\r", "\r\n", "\n", "\r\n")

// message is the mail as it goes to the server. Its headers name no recipient of bcc.
func (m *email) message(id string, date time.Time) ([]byte, error) {
	msg := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	msg.SetMessageIDWithValue(id)
	msg.SetDateWithValue(date.UTC())
	msg.FromMailAddress(m.from.header())
	msg.ToMailAddress(headers(m.to)...)
	if len(m.cc) > 0 {
		msg.CcMailAddress(headers(m.cc)...)
	}
	if m.replyTo != nil {
		msg.ReplyToMailAddress(m.replyTo.header())
	}
	msg.Subject(m.subject)
	for name, value := range m.headers {
		msg.SetGenHeader(gomail.Header(name), value)
	}
	if m.text != nil {
		msg.AddAlternativeString(gomail.TypeTextPlain, newlines.Replace(*m.text))
	}
	if m.html != nil { // last: of alternatives the last is the best
		msg.AddAlternativeString(gomail.TypeTextHTML, newlines.Replace(*m.html))
	}
	for _, a := range m.attachments {
		if err := msg.AttachReader(a.Name, bytes.NewReader(a.Content), a.describe); err != nil {
			return nil, err
		}
	}
	var raw bytes.Buffer
	_, err := msg.WriteTo(&raw)
	return raw.Bytes(), err
}

// describe writes the name as RFC 2231 has it, which the library does not.
func (a attachment) describe(f *gomail.File) {
	f.Header.Set("Content-Type", a.ContentType)
	f.Header.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": a.Name}))
}

func headers(list []address) []*mail.Address {
	all := make([]*mail.Address, len(list))
	for i, a := range list {
		all[i] = a.header()
	}
	return all
}
