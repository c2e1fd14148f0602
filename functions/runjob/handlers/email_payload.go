package handlers

import (
	"errors"
	"fmt"
	"mime"
	"net/mail"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json"
	"golang.org/x/net/idna"
)

// Limits of a mail, in addition to those of a job.
const (
	maxRecipients  = 100 // every server must accept this many (RFC 5321)
	maxAttachments = 50
	maxHeaders     = 50
	maxHeaderValue = 2_000 // bytes; also for the subject
	maxHeaderWord  = 900   // bytes; a line has at most 998
	maxFileName    = 255
)

// email is a valid payload of type EMAIL.
type email struct {
	from        *address // nil: not named
	replyTo     *address // nil: not named
	to, cc, bcc []address
	subject     string
	text, html  *string // nil: not given
	attachments []attachment
	headers     map[string]string
}

type attachment struct {
	Name        string `json:"name"`
	ContentType string `json:"contentType"`
	Content     []byte `json:"content"` // base64
}

// address is a mail address that needs no quotes, with its domain in ASCII.
type address struct {
	name   string
	local  string
	domain string
}

func (a address) String() string        { return a.local + "@" + a.domain }
func (a address) header() *mail.Address { return &mail.Address{Name: a.name, Address: a.String()} }
func (a address) ascii() bool           { return isASCII(a.local) }

// parseEmail reads a payload, and does not rely on the schema's check.
func parseEmail(payload []byte) (*email, error) {
	var p struct {
		From        *string           `json:"from"`
		To          []string          `json:"to"`
		CC          []string          `json:"cc"`
		BCC         []string          `json:"bcc"`
		ReplyTo     *string           `json:"replyTo"`
		Subject     *string           `json:"subject"`
		Text        *string           `json:"text"`
		HTML        *string           `json:"html"`
		Attachments []attachment      `json:"attachments"`
		Headers     map[string]string `json:"headers"`
	}
	if err := json.Unmarshal(payload, &p, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("payload: %w", err)
	}
	m := &email{text: p.Text, html: p.HTML, attachments: p.Attachments, headers: map[string]string{}}
	var errs []error
	note := func(path string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("payload.%s: %w", path, err))
		}
	}
	one := func(path string, text *string) *address {
		if text == nil {
			return nil
		}
		a, err := parseAddress(*text)
		note(path, err)
		return &a
	}
	many := func(path string, texts []string) []address {
		list := make([]address, len(texts))
		for i, text := range texts {
			list[i] = *one(fmt.Sprintf("%s[%d]", path, i), &text)
		}
		return list
	}
	m.from, m.replyTo = one("from", p.From), one("replyTo", p.ReplyTo)
	m.to, m.cc, m.bcc = many("to", p.To), many("cc", p.CC), many("bcc", p.BCC)
	switch n := len(m.to) + len(m.cc) + len(m.bcc); {
	case len(m.to) == 0:
		note("to", errors.New("must have at least one address"))
	case n > maxRecipients:
		note("to", fmt.Errorf("with cc and bcc there are %d addresses, of at most %d", n, maxRecipients))
	}
	if p.Subject == nil {
		note("subject", errors.New("is required"))
	} else {
		var err error
		m.subject, err = headerValue(*p.Subject)
		note("subject", err)
	}
	if p.Text == nil && p.HTML == nil {
		note("text", errors.New("is required where there is no html"))
	}
	note("attachments", checkAttachments(m.attachments))
	if len(p.Headers) > maxHeaders {
		note("headers", fmt.Errorf("there are %d, of at most %d", len(p.Headers), maxHeaders))
	}
	seen := map[string]bool{}
	for name, value := range p.Headers {
		err := checkHeaderName(name)
		if lower := strings.ToLower(name); seen[lower] {
			err = errors.New("is there twice, in upper and lower case")
		} else {
			seen[lower] = true
		}
		if err == nil {
			m.headers[name], err = headerValue(value)
		}
		note("headers."+strings.ToValidUTF8(name, ""), err)
	}
	return m, errors.Join(errs...)
}

// recipients returns all recipients, each once.
func (m *email) recipients() []address {
	var all []address
	for _, a := range slices.Concat(m.to, m.cc, m.bcc) {
		if !slices.ContainsFunc(all, func(b address) bool { return a.String() == b.String() }) {
			all = append(all, a)
		}
	}
	return all
}

// needsUTF8 reports whether an address has characters beyond ASCII, which commands and headers then contain as they
// are.
func (m *email) needsUTF8() bool {
	named := slices.Concat(m.to, m.cc, m.bcc, []address{*m.from})
	if m.replyTo != nil {
		named = append(named, *m.replyTo)
	}
	return slices.ContainsFunc(named, func(a address) bool { return !a.ascii() })
}

// parseAddress parses a@b.example or Name <a@b.example>.
func parseAddress(text string) (address, error) {
	parsed, err := mail.ParseAddress(text)
	if err != nil {
		return address{}, errors.New("is not a mail address: " + strings.TrimPrefix(err.Error(), "mail: "))
	}
	at := strings.LastIndexByte(parsed.Address, '@')
	a := address{local: parsed.Address[:at]}
	if a.name, err = headerValue(parsed.Name); err != nil { // an encoded word may hide any character
		return a, fmt.Errorf("its name %w", err)
	}
	// A quoted part before the @ can look like another address or a parameter to a less careful reader.
	if (&mail.Address{Address: parsed.Address}).String() != "<"+parsed.Address+">" {
		return a, errors.New("needs quotes before the @, which is not supported")
	}
	if strings.ContainsFunc(a.local, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return a, errors.New("has a character before the @ that is not to be seen")
	}
	if len(a.local) > 64 {
		return a, errors.New("has more than 64 bytes before the @")
	}
	if a.domain, err = idna.Lookup.ToASCII(parsed.Address[at+1:]); err != nil || !hostName.MatchString(a.domain) ||
		len(a.domain) > 253 {
		return a, errors.New("has no host name after the @")
	}
	return a, nil
}

var (
	hostName   = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$`)
	headerName = regexp.MustCompile(`^[A-Za-z0-9-]{1,76}$`)
	ownHeader  = regexp.MustCompile(`(?i)^(from|sender|to|cc|bcc|reply-to|subject|date|message-id|return-path|` +
		`content-.*|mime-.*|received.*|resent-.*|dkim-.*|arc-.*|authentication-results)$`)
)

func checkHeaderName(name string) error {
	switch {
	case !headerName.MatchString(name):
		return errors.New("is not a header's name: letters, digits and hyphens, at most 76")
	case ownHeader.MatchString(name):
		return errors.New("cannot be set by a job")
	}
	return nil
}

// headerValue returns a text as one line for a header. Runs of blanks become one blank, because headers are folded at
// blanks, and some readers take a folded line of blanks for the end of the headers.
func headerValue(text string) (string, error) {
	if strings.ContainsFunc(text, breaksLine) {
		return "", errors.New("has a line break or another control character")
	}
	if strings.Contains(text, "=?") {
		return "", errors.New("looks like an encoded word (=?…): write it in plain text")
	}
	if len(text) > maxHeaderValue {
		return "", fmt.Errorf("has %d bytes, of at most %d", len(text), maxHeaderValue)
	}
	words := slices.DeleteFunc(strings.Split(text, " "), func(word string) bool { return word == "" })
	for _, word := range words {
		if len(word) > maxHeaderWord && isASCII(text) {
			return "", fmt.Errorf("has a word of %d bytes, of at most %d", len(word), maxHeaderWord)
		}
	}
	return strings.Join(words, " "), nil
}

// breaksLine reports whether a character breaks lines for some reader, or is another control character.
func breaksLine(r rune) bool { return unicode.IsControl(r) || unicode.In(r, unicode.Zl, unicode.Zp) }

func checkAttachments(list []attachment) error {
	if len(list) > maxAttachments {
		return fmt.Errorf("there are %d, of at most %d", len(list), maxAttachments)
	}
	for i := range list {
		a := &list[i]
		switch {
		case a.Name == "" || len(a.Name) > maxFileName:
			return fmt.Errorf("the name of [%d] has %d bytes, of 1 to %d", i, len(a.Name), maxFileName)
		case strings.ContainsFunc(a.Name, breaksLine) || strings.ContainsAny(a.Name, `/\`):
			return fmt.Errorf("the name of [%d] has a slash or a control character", i)
		case a.Content == nil:
			return fmt.Errorf("[%d] has no content", i)
		}
		if a.ContentType == "" {
			a.ContentType = "application/octet-stream"
		}
		media, parameters, err := mime.ParseMediaType(a.ContentType)
		if err != nil || !strings.Contains(media, "/") || strings.HasPrefix(media, "multipart/") ||
			strings.HasPrefix(media, "message/") || len(a.ContentType) > maxFileName {
			return fmt.Errorf("the contentType of [%d] is none of a file", i)
		}
		if a.ContentType = mime.FormatMediaType(media, parameters); a.ContentType == "" {
			return fmt.Errorf("the contentType of [%d] cannot be written", i)
		}
	}
	return nil
}

func isASCII(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII })
}
