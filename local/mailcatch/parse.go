package mailcatch

import (
	"bytes"
	"cmp"
	"io"
	"strings"

	"github.com/emersion/go-message"
	_ "github.com/emersion/go-message/charset" // reads charsets that only other programs write
	"github.com/emersion/go-message/mail"
)

// summary has the parts of a message that the list shows.
type summary struct {
	From      string   `json:"from"`
	To        []string `json:"to"`
	Cc        []string `json:"cc"`
	Subject   string   `json:"subject"`
	MessageID string   `json:"messageId"`
	Files     int      `json:"attachmentCount"`
}

// parsed has the parts of a message, as far as it can be parsed.
type parsed struct {
	Headers     []header `json:"headers"`
	Text        string   `json:"text"`
	HTML        string   `json:"html"`
	Attachments []file   `json:"attachments"`
}

type header struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type file struct {
	Name        string `json:"name"`
	ContentType string `json:"contentType"`
	Size        int    `json:"size"`

	content []byte
}

// maxParts bounds the work that a message can make.
const maxParts = 1000

// parse never fails: it leaves out the parts that it cannot read.
func parse(raw []byte) (summary, *parsed) {
	s, p := summary{To: []string{}, Cc: []string{}}, &parsed{Headers: []header{}, Attachments: []file{}}
	reader, err := mail.CreateReader(bytes.NewReader(raw))
	if err != nil && !message.IsUnknownCharset(err) || reader == nil {
		p.Text = string(raw)
		return s, p
	}
	defer func() { _ = reader.Close() }()
	for fields := reader.Header.Fields(); fields.Next(); {
		value, err := fields.Text()
		if err != nil {
			value = fields.Value()
		}
		p.Headers = append(p.Headers, header{fields.Key(), value})
	}
	s.Subject, _ = reader.Header.Subject()
	s.MessageID, _ = reader.Header.MessageID()
	s.From = strings.Join(addresses(reader.Header, "From"), ", ")
	s.To, s.Cc = append(s.To, addresses(reader.Header, "To")...), append(s.Cc, addresses(reader.Header, "Cc")...)
	for range maxParts {
		part, err := reader.NextPart()
		if err != nil && !message.IsUnknownCharset(err) || part == nil {
			break
		}
		p.add(part)
	}
	s.Files = len(p.Attachments)
	return s, p
}

func (p *parsed) add(part *mail.Part) {
	content, _ := io.ReadAll(part.Body) // on an error, the part that could be read
	switch h := part.Header.(type) {
	case *mail.AttachmentHeader:
		name, _ := h.Filename()
		media, _, _ := h.ContentType()
		p.Attachments = append(p.Attachments, file{cmp.Or(name, "unnamed"), media, len(content), content})
	case *mail.InlineHeader:
		media, parameters, _ := h.ContentType()
		switch {
		case media == "text/html" && p.HTML == "":
			p.HTML = string(content)
		case (media == "text/plain" || media == "") && p.Text == "":
			p.Text = string(content)
		default: // for example an image in the HTML
			p.Attachments = append(p.Attachments, file{cmp.Or(parameters["name"], "unnamed"), media, len(content), content})
		}
	}
}

func addresses(h mail.Header, name string) []string {
	list, err := h.AddressList(name)
	if err != nil { // an unreadable list is shown unchanged
		text, _ := h.Text(name)
		return []string{text}
	}
	var all []string
	for _, a := range list {
		if a.Name == "" {
			all = append(all, a.Address)
			continue
		}
		all = append(all, a.Name+" <"+a.Address+">")
	}
	return all
}
