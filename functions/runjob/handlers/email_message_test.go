package handlers_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	netmail "net/mail"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/jobweaver/jobweaver/functions/runjob/handlers"
)

const messageID = "17.1@example.com"

// read is a message as a mail program shows it.
type read struct {
	header      netmail.Header
	subject     string
	to, cc      []string
	text, html  string
	attachments map[string][]byte
}

// readBack parses a message independently of the code that wrote it.
func readBack(raw []byte) (*read, error) {
	for i, line := range bytes.Split(raw, []byte("\r\n")) {
		if bytes.ContainsAny(line, "\r\n") || len(line) > 998 {
			return nil, fmt.Errorf("line %d is none: %q", i, line)
		}
	}
	m, err := netmail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	r := &read{header: m.Header, attachments: map[string][]byte{}}
	if r.subject, err = new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject")); err != nil {
		return nil, err
	}
	for name, list := range map[string]*[]string{"To": &r.to, "Cc": &r.cc} {
		all, err := m.Header.AddressList(name)
		if err != nil && !errors.Is(err, netmail.ErrHeaderNotPresent) {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for _, a := range all {
			*list = append(*list, a.Address)
		}
	}
	return r, r.part(map[string][]string(m.Header), m.Body)
}

func (r *read) part(header map[string][]string, body io.Reader) error {
	get := func(name string) string { return netmail.Header(header).Get(name) }
	media, parameters, err := mime.ParseMediaType(get("Content-Type"))
	if err != nil {
		return err
	}
	if strings.HasPrefix(media, "multipart/") {
		parts := multipart.NewReader(body, parameters["boundary"])
		for {
			part, err := parts.NextRawPart()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			if err := r.part(part.Header, part); err != nil {
				return err
			}
		}
	}
	switch get("Content-Transfer-Encoding") {
	case "quoted-printable":
		body = quotedprintable.NewReader(body)
	case "base64":
		body = base64.NewDecoder(base64.StdEncoding, body)
	}
	content, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	if disposition := get("Content-Disposition"); disposition != "" {
		_, parameters, err := mime.ParseMediaType(disposition)
		r.attachments[parameters["filename"]] = content
		return err
	}
	if media == "text/html" {
		r.html = string(content)
	} else {
		r.text = string(content)
	}
	return nil
}

func TestAMessageHasTheContentsOfItsPayload(t *testing.T) {
	t.Parallel()
	payload := object{
		"from": `"Grüße, Shop" <shop@example.com>`, "to": []string{`Ada "the countess" Lovelace <ada@example.org>`, "李 <li@例え.example>"},
		"cc": []string{"bob@example.org"}, "bcc": []string{"hidden@example.org"}, "replyTo": "help@example.com",
		"subject": "  Ihre Bestellung  №17 – " + strings.Repeat("sehr ", 60) + "lang ☃", "text": "Grüße\n.\nfrom us\r\n" + strings.Repeat("x", 3000),
		"html":        "<p>Grüße",
		"attachments": []object{{"name": "Rechnung №17.csv", "contentType": "text/csv; charset=utf-8", "content": "YSxiCg=="}, {"name": "a;b.bin", "content": ""}},
		"headers":     object{"X-Campaign": "Herbst ☃", "List-Unsubscribe": "<https://example.com/u?" + strings.Repeat("a", 200) + ">"},
	}
	text, err := json.Marshal(payload)
	if err != nil {
		t.Fatal(err)
	}
	raw, recipients, err := handlers.WriteEmail(text, messageID)
	if err != nil {
		t.Fatal(err)
	}
	r, err := readBack(raw)
	if err != nil {
		t.Fatalf("%v\n%s", err, raw)
	}
	host := "li@xn--r8jz45g.example"
	if !slices.Equal(recipients, []string{"ada@example.org", host, "bob@example.org", "hidden@example.org"}) {
		t.Errorf("recipients %q", recipients)
	}
	from, err := r.header.AddressList("From")
	if err != nil || len(from) != 1 || from[0].Name != "Grüße, Shop" || from[0].Address != "shop@example.com" {
		t.Errorf("from %v, %v", from, err)
	}
	if !slices.Equal(r.to, []string{"ada@example.org", host}) || !slices.Equal(r.cc, []string{"bob@example.org"}) {
		t.Errorf("to %q, cc %q", r.to, r.cc)
	}
	if want := "Ihre Bestellung №17 – " + strings.Repeat("sehr ", 60) + "lang ☃"; r.subject != want {
		t.Errorf("subject %q", r.subject)
	}
	if want := "Grüße\r\n.\r\nfrom us\r\n" + strings.Repeat("x", 3000); r.text != want || r.html != "<p>Grüße" {
		t.Errorf("text %q, html %q", r.text, r.html)
	}
	if len(r.attachments) != 2 || string(r.attachments["Rechnung №17.csv"]) != "a,b\n" || len(r.attachments["a;b.bin"]) != 0 {
		t.Errorf("attachments %q", r.attachments)
	}
	for name, want := range map[string]string{
		"Message-Id": "<" + messageID + ">", "Reply-To": "<help@example.com>", "Mime-Version": "1.0", "Bcc": "", "User-Agent": "",
		"List-Unsubscribe": "<https://example.com/u?" + strings.Repeat("a", 200) + ">",
	} {
		if got := r.header.Get(name); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	if _, err := r.header.Date(); err != nil {
		t.Error(err)
	}
}

// RFC 5322 and RFC 2047 bound lines to 998 bytes and encoded words to 75 characters.
func TestLongAndForeignHeadersAreFoldedAndEncoded(t *testing.T) {
	t.Parallel()
	var to, mailboxes []string
	for i := range 100 {
		mailboxes = append(mailboxes, fmt.Sprintf("person.number.%d@%s.example.org", i, strings.Repeat("long-", 10)+"host"))
		name := []string{`"Doe, John \"Jo\" (x)"`, "Jörg Müller-Lüdenscheidt", `李小龍`, ""}[i%4]
		to = append(to, strings.TrimSpace(name+" <"+mailboxes[i]+">"))
	}
	for _, subject := range []string{
		strings.Repeat("word ", 399) + "end", strings.Repeat("ü", 1000), "👩‍👩‍👧 " + strings.Repeat("語", 600), `"quoted" (x) <y>, ;:`, "",
	} {
		text, err := json.Marshal(object{"to": to, "subject": subject, "text": "x", "headers": object{"X-A": strings.Repeat("ä ", 600) + "x"}})
		if err != nil {
			t.Fatal(err)
		}
		raw, recipients, err := handlers.WriteEmail(text, messageID)
		if err != nil {
			t.Fatal(err)
		}
		r, err := readBack(raw)
		if err != nil {
			t.Fatalf("%v\n%s", err, raw)
		}
		if r.subject != subject || !slices.Equal(r.to, mailboxes) || !slices.Equal(recipients, mailboxes) {
			t.Errorf("subject %q, to %q", r.subject, r.to)
		}
		list, err := r.header.AddressList("To")
		if err != nil || list[0].Name != `Doe, John "Jo" (x)` || list[1].Name != "Jörg Müller-Lüdenscheidt" || list[2].Name != "李小龍" {
			t.Errorf("to %v, %v", list[:3], err)
		}
		header, _, _ := strings.Cut(string(raw), "\r\n\r\n")
		for line := range strings.SplitSeq(header, "\r\n") {
			if len(line) > 78+len(mailboxes[0]) || strings.TrimSpace(line) == "" {
				t.Errorf("a line of %d bytes: %q", len(line), line)
			}
			for word := range strings.FieldsSeq(line) {
				if strings.HasPrefix(word, "=?") && len(word) > 75+len(",") {
					t.Errorf("an encoded word of %d characters: %s", len(word), word)
				}
			}
		}
	}
}

func TestPayloadsThatCouldInjectHeadersAreRefused(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]object{
		"a line break in the subject":         {"subject": "Hello\r\nBcc: eve@example.org"},
		"a lone CR in the subject":            {"subject": "Hello\rBcc: eve@example.org"},
		"a lone LF in the subject":            {"subject": "Hello\nBcc: eve@example.org"},
		"another line break in the subject":   {"subject": "Hello\u0085Bcc: eve@example.org"},
		"a line separator in the subject":     {"subject": "Hello\u2028Bcc: eve@example.org"},
		"a paragraph separator in a name":     {"to": []string{"\"Ada\u2029Bcc: eve\" <ada@example.org>"}},
		"a NUL in the subject":                {"subject": "Hello\x00"},
		"a NUL in a name":                     {"to": []string{"\"Ada\x00\" <ada@example.org>"}},
		"a NUL before the @":                  {"to": []string{"ada\x00@example.org"}},
		"a NUL in a header":                   {"headers": object{"X-A": "a\x00"}},
		"a header with a line separator":      {"headers": object{"X-A": "a\u2028Bcc: eve@example.org"}},
		"a header twice":                      {"headers": object{"References": "<a@b.example>", "references": "<c@d.example>"}},
		"a line separator in a file name":     {"attachments": []object{{"name": "a\u2028b", "content": ""}}},
		"an encoded word in the subject":      {"subject": "=?utf-8?q?Hello=0D=0ABcc:_eve@example.org?="},
		"a line break in an address":          {"to": []string{"ada@example.org\r\nBcc: eve@example.org"}},
		"a line break in a folded address":    {"to": []string{"ada@example.org\r\n (x)"}},
		"a line break in a name":              {"to": []string{"Ada\r\nBcc: eve@example.org <ada@example.org>"}},
		"a line break in a quoted name":       {"to": []string{"\"Ada\r\nBcc: eve\" <ada@example.org>"}},
		"a line break in an encoded name":     {"to": []string{"=?utf-8?q?Ada=0D=0ABcc:_eve?= <ada@example.org>"}},
		"a line break in the sender":          {"from": "shop@example.com\r\nDATA"},
		"a line break in replyTo":             {"replyTo": "shop@example.com\r\nBcc: eve@example.org"},
		"two addresses in one":                {"to": []string{"ada@example.org, eve@example.org"}},
		"a line break of others before the @": {"to": []string{"ada\u0085eve@example.org"}},
		"text that turns round before the @":  {"to": []string{"ada\u202egro@example.org"}},
		"a character of no width":             {"to": []string{"ada\u200b@example.org"}},
		"a group":                             {"to": []string{"all: ada@example.org, eve@example.org;"}},
		"quotes before the @":                 {"to": []string{`"ada> NOTIFY=NEVER <eve"@example.org`}},
		"no host":                             {"to": []string{"ada"}},
		"an address in brackets":              {"to": []string{"ada@[127.0.0.1]"}},
		"a host that is none":                 {"to": []string{"ada@exa_mple.org"}},
		"nobody":                              {"to": []string{}},
		"too many":                            {"cc": slices.Repeat([]string{"ada@example.org"}, 100)},
		"no body":                             {"text": nil},
		"a member that is not known":          {"txt": "hi"},
		"a header with a line break":          {"headers": object{"X-A": "a\r\nBcc: eve@example.org"}},
		"a header with a line break, folded":  {"headers": object{"X-A": "a\r\n b"}},
		"a header whose name has more":        {"headers": object{"X-A: b\r\nBcc": "eve@example.org"}},
		"a header whose name has a colon":     {"headers": object{"Bcc:": "eve@example.org"}},
		"a header without a name":             {"headers": object{"": "a"}},
		"a header of one long word":           {"headers": object{"X-A": strings.Repeat("a", 1000)}},
		"From":                                {"headers": object{"from": "eve@example.org"}},
		"Sender":                              {"headers": object{"Sender": "eve@example.org"}},
		"To":                                  {"headers": object{"TO": "eve@example.org"}},
		"Cc":                                  {"headers": object{"Cc": "eve@example.org"}},
		"Bcc":                                 {"headers": object{"bCC": "eve@example.org"}},
		"Subject":                             {"headers": object{"Subject": "other"}},
		"Date":                                {"headers": object{"Date": "other"}},
		"Message-ID":                          {"headers": object{"Message-Id": "<other>"}},
		"Content-Type":                        {"headers": object{"content-type": "text/html"}},
		"MIME-Version":                        {"headers": object{"MIME-Version": "2.0"}},
		"Received":                            {"headers": object{"Received": "from nowhere"}},
		"Return-Path":                         {"headers": object{"Return-Path": "<eve@example.org>"}},
		"DKIM-Signature":                      {"headers": object{"DKIM-Signature": "v=1"}},
		"Resent-To":                           {"headers": object{"Resent-To": "eve@example.org"}},
		"a line break in a file name":         {"attachments": []object{{"name": "a\r\nBcc: eve.txt", "content": ""}}},
		"a folder in a file name":             {"attachments": []object{{"name": "../../a.txt", "content": ""}}},
		"a line break in a content type":      {"attachments": []object{{"name": "a", "contentType": "text/csv\r\nX-A: b", "content": ""}}},
		"an attachment of several parts":      {"attachments": []object{{"name": "a", "contentType": "multipart/mixed; boundary=x", "content": ""}}},
		"an attachment that is not in base64": {"attachments": []object{{"name": "a", "content": "!"}}},
		"an attachment of nothing at all":     {"attachments": []object{{"name": "a"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			payload := simple()
			for member, value := range change {
				payload[member] = value
			}
			server := script{}.open(t)
			_, failure, err := mail(t.Context(), t, server.cfg, payload)
			if failure == nil || failure.Code != "WORKER.INVALID_PAYLOAD" || failure.Retryable || !strings.Contains(failure.Message, "payload") {
				t.Errorf("ended with %v", err)
			}
			if received := server.lines(); len(received) != 0 {
				t.Errorf("the server received %q", received)
			}
		})
	}
}

func FuzzEmailMessage(f *testing.F) {
	f.Add("Ada <ada@example.org>", "bob@example.org", "Hello", "text\n.\n", "<p>", "X-A", "b", "a.txt", "text/plain", []byte("a"))
	f.Add("李 <li@例え.example>", "jörg@example.org", "Grüße   №17"+strings.Repeat(" sehr", 50), "\r.\r\n\n", "", "List-Id", strings.Repeat("a ", 90), "№.csv", "text/csv; charset=utf-8", []byte{0})
	f.Add(`"a\"b" <a@b.c>`, "a@b", strings.Repeat(" ", 200)+strings.Repeat("x", 80), "=", "=\xff", "References", "<a@b> <c@d>", "a\"b", "a/b;c=d", []byte("\r\n.\r\n"))
	f.Fuzz(func(t *testing.T, to, bcc, subject, text, html, name, value, file, contentType string, content []byte) {
		for _, s := range []string{to, bcc, subject, text, html, name, value, file, contentType} {
			if !utf8.ValidString(s) {
				return
			}
		}
		payload, err := json.Marshal(object{
			"to": []string{to}, "bcc": []string{bcc}, "subject": subject, "text": text, "html": html, "headers": object{name: value},
			"attachments": []object{{"name": file, "contentType": contentType, "content": content}},
		})
		if err != nil {
			t.Fatal(err)
		}
		raw, recipients, err := handlers.WriteEmail(payload, messageID)
		if err != nil {
			return
		}
		r, err := readBack(raw)
		if err != nil {
			t.Fatalf("%v\n%s", err, raw)
		}
		if want := strings.Join(slices.DeleteFunc(strings.Split(subject, " "), func(s string) bool { return s == "" }), " "); r.subject != want {
			t.Errorf("subject %q, not %q", r.subject, want)
		}
		if len(r.to) != 1 || r.to[0] != recipients[0] || len(recipients) > 2 {
			t.Errorf("to %q, recipients %q", r.to, recipients)
		}
		newlines := strings.NewReplacer("\r\n", "\r\n", "\r", "\r\n", "\n", "\r\n")
		if r.text != newlines.Replace(text) || r.html != newlines.Replace(html) {
			t.Errorf("text %q, html %q", r.text, r.html)
		}
		if got, ok := r.attachments[file]; !ok || !bytes.Equal(got, content) {
			t.Errorf("attachments %q", r.attachments)
		}
		for header, values := range r.header {
			own := []string{"Message-Id", "Date", "From", "To", "Subject", "Mime-Version", "Content-Type"}
			if !slices.Contains(own, header) && !strings.EqualFold(header, name) || len(values) != 1 {
				t.Errorf("header %s: %q", header, values)
			}
		}
	})
}

func FuzzEmailPayload(f *testing.F) {
	f.Add([]byte(`{"to": ["ada@example.org"], "subject": "Hello", "text": "hi"}`))
	f.Add([]byte(`{"to": ["ada@example.org", null], "cc": [], "subject": "Hello", "html": "", "attachments": [{"name": "a", "content": "YQ=="}]}`))
	f.Add([]byte(`{"from": "a@b", "replyTo": "=?utf-8?q?a?= <a@b>", "headers": {"X-A": "b"}, "to": null, "subject": null}`))
	f.Fuzz(func(t *testing.T, payload []byte) {
		raw, recipients, err := handlers.WriteEmail(payload, messageID)
		if err != nil {
			return
		}
		if r, err := readBack(raw); err != nil || len(r.to) == 0 || len(recipients) == 0 {
			t.Errorf("%v\n%s", err, raw)
		}
	})
}
