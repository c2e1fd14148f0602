package handlers

import (
	"bytes"
	"mime"
	"net/mail"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"
)

// newlines converts all line breaks to CRLF: mime/quotedprintable loses a break that follows an escaped character after
// a lone CR.
var newlines = strings.NewReplacer("\r\n", "\r\n", "\r", "\r\n", "\n", "\r\n")

// message returns the message as it is sent to the server. Its headers name no recipient of bcc.
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
	if m.html != nil { // last, because the last alternative is the best
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

// describe encodes the name by RFC 2231, which the library does not do.
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
