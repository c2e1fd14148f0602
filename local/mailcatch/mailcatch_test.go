package mailcatch

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/smtp"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T) *Server {
	t.Helper()
	s, err := Start(Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

const sample = "From: =?utf-8?q?Gr=C3=BC=C3=9Fe?= <shop@example.com>\r\nTo: Ada <ada@example.org>\r\nSubject: =?utf-8?q?Bestellung_=E2=84=9617?=\r\n" +
	"Message-ID: <17.1@example.com>\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n" +
	"--b\r\nContent-Type: multipart/alternative; boundary=a\r\n\r\n" +
	"--a\r\nContent-Type: text/plain; charset=iso-8859-1\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\nGr=FC=DFe <b>\r\n" +
	"--a\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<p>Grüße<script>alert(1)</script><img src=https://example.org/x.png>\r\n--a--\r\n" +
	"--b\r\nContent-Type: text/html\r\nContent-Disposition: attachment; filename*=utf-8''n%C3%A4chste.html\r\nContent-Transfer-Encoding: base64\r\n\r\nPGI+\r\n--b--\r\n"

func (s *Server) send(t *testing.T, raw string, to ...string) {
	t.Helper()
	address := net.JoinHostPort(s.Host(), strconv.Itoa(s.Port()))
	if err := smtp.SendMail(address, nil, "bounces@example.com", to, []byte(raw)); err != nil {
		t.Fatal(err)
	}
}

// ask requests the page, with the given Host name if there is one.
func (s *Server) ask(t *testing.T, method, path string, headers ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL()+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
	}
	client := &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(body)
}

func TestACaughtMailIsShown(t *testing.T) {
	t.Parallel()
	s := start(t)
	if _, body := s.ask(t, "GET", "/"); !strings.Contains(body, "No mail yet") {
		t.Errorf("before the first: %s", body)
	}
	s.send(t, sample, "ada@example.org", "hidden@example.org")
	s.send(t, "Subject: second\r\n\r\nhi\r\n", "bob@example.org")
	_, list := s.ask(t, "GET", "/")
	if first, second := strings.Index(list, "Bestellung №17"), strings.Index(list, ">second<"); second < 0 || first < second {
		t.Errorf("the list is not newest first: %s", list)
	}
	for path, want := range map[string][]string{
		"/messages/1":                {"Grüße &lt;shop@example.com&gt;", "hidden@example.org", "nächste.html", `<iframe sandbox title="The message" src="/messages/1/html">`},
		"/messages/1?view=text":      {"Grüße &lt;b&gt;"},
		"/messages/1?view=headers":   {"Message-Id", "&lt;17.1@example.com&gt;"},
		"/messages/1?view=source":    {"Gr=FC=DFe &lt;b&gt;"},
		"/messages/1?view=<script>":  {"<iframe"},
		"/messages/2":                {`<pre class="text">hi`},
		"/messages/1/html":           {"<p>Grüße<script>alert(1)"},
		"/messages/1/source":         {"boundary=b"},
		"/messages/1/attachments/0":  {"<b>"},
		"/messages/1/attachments/1":  {"no such"},
		"/messages/1/attachments/-1": {"no such"},
		"/messages/3":                {"no such"},
		"/style.css":                 {"--ground"},
		"/api/messages/1":            {`"text":"Grüße \u003cb\u003e`, `"name":"nächste.html"`, `"to":["Ada \u003cada@example.org\u003e"]`},
	} {
		answer, body := s.ask(t, "GET", path)
		for _, part := range want {
			if !strings.Contains(body, part) {
				t.Errorf("%s: no %s in %s", path, part, body)
			}
		}
		if (answer.StatusCode == http.StatusOK) == strings.Contains(want[0], "no such") {
			t.Errorf("%s: %s", path, answer.Status)
		}
	}
	_, body := s.ask(t, "GET", "/api/messages")
	var listed struct {
		Messages []struct {
			ID, From, Subject, MessageID string
			To                           []string
			Envelope                     envelope
			AttachmentCount, Size        int
		}
	}
	if err := json.Unmarshal([]byte(body), &listed); err != nil || len(listed.Messages) != 2 {
		t.Fatalf("%v: %s", err, body)
	}
	m := listed.Messages[1]
	if m.ID != "1" || m.Subject != "Bestellung №17" || m.From != "Grüße <shop@example.com>" || m.MessageID != "17.1@example.com" ||
		m.AttachmentCount != 1 || m.Size == 0 || m.Envelope.From != "bounces@example.com" || len(m.Envelope.To) != 2 || len(m.To) != 1 {
		t.Errorf("listed as %+v", m)
	}
}

func TestAMailCannotHarmItsReader(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.send(t, sample, "ada@example.org")
	answer, _ := s.ask(t, "GET", "/messages/1/html")
	if csp := answer.Header.Get("Content-Security-Policy"); !strings.HasPrefix(csp, "sandbox; default-src 'none';") {
		t.Errorf("HTML with %q", csp)
	}
	for _, path := range []string{"/messages/1/attachments/0", "/messages/1/source"} {
		answer, _ := s.ask(t, "GET", path)
		if h := answer.Header; !strings.HasPrefix(h.Get("Content-Disposition"), "attachment") || h.Get("Content-Type") != "application/octet-stream" ||
			h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s with %v", path, h)
		}
	}
	answer, _ = s.ask(t, "GET", "/")
	if csp := answer.Header.Get("Content-Security-Policy"); strings.Contains(csp, "unsafe") || !strings.HasPrefix(csp, "default-src 'none'") {
		t.Errorf("the page with %q", csp)
	}
}

func TestOnlyThisMachineIsAnswered(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.send(t, sample, "ada@example.org")
	for host, ok := range map[string]bool{
		"localhost": true, "LocalHost:8025": true, "127.0.0.1:1": true, "[::1]:8025": true, "127.1.2.3": true,
		"evil.example": false, "localhost.evil.example": false, "10.0.0.1": false, "127.0.0.1.nip.io:8025": false, "0.0.0.0": false,
	} {
		answer, body := s.ask(t, "GET", "/api/messages", "Host", host)
		if (answer.StatusCode == http.StatusOK) != ok || strings.Contains(body, "Bestellung") != ok {
			t.Errorf("%s: %s", host, answer.Status)
		}
	}
	for _, method := range []string{"DELETE /api/messages", "POST /delete"} {
		verb, path, _ := strings.Cut(method, " ")
		if answer, _ := s.ask(t, verb, path, "Sec-Fetch-Site", "cross-site"); answer.StatusCode != http.StatusForbidden {
			t.Errorf("%s of another site: %s", method, answer.Status)
		}
		if len(s.box.all()) != 1 {
			t.Fatal("another site has deleted a mail")
		}
		if answer, _ := s.ask(t, verb, path); answer.StatusCode >= 400 || len(s.box.all()) != 0 {
			t.Errorf("%s: %s", method, answer.Status)
		}
		s.send(t, sample, "ada@example.org")
	}
}

func TestWhatIsNoMailIsShownAsItIs(t *testing.T) {
	t.Parallel()
	s := start(t)
	for i, raw := range []string{
		"", "no headers at all\r\n", "Subject: =?utf-8?q?broken\r\nFrom: @@\r\nContent-Type: multipart/mixed\r\n\r\n--x\r\n",
		"Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nnever ends", "Content-Type: text/plain; charset=unknown-to-all\r\n\r\n\xff\xfe\r\n",
		"Content-Transfer-Encoding: base64\r\n\r\n!!!\r\n", "Subject: \x00\x01<script>\r\n\r\n\x00\r\n",
	} {
		s.send(t, raw, "ada@example.org")
		for _, path := range []string{"", "?view=headers", "?view=source", "?view=text"} {
			if answer, body := s.ask(t, "GET", fmt.Sprintf("/messages/%d%s", i+1, path)); answer.StatusCode != http.StatusOK || strings.Contains(body, "<script>") {
				t.Errorf("%q, %s: %s", raw, path, answer.Status)
			}
		}
	}
	if answer, _ := s.ask(t, "GET", "/"); answer.StatusCode != http.StatusOK {
		t.Error(answer.Status)
	}
}

func TestOnlyTheLastMailsAreKept(t *testing.T) {
	t.Parallel()
	b := newBox(3, 100)
	for i := range 5 {
		b.put(envelope{}, fmt.Appendf(nil, "Subject: %d\r\n\r\n", i+1), time.Now())
	}
	if all := b.all(); len(all) != 3 || all[0].Subject != "5" || all[2].ID != "3" || b.find("2") != nil {
		t.Errorf("kept %d", len(all))
	}
	b.put(envelope{}, []byte("Subject: large\r\n\r\n"+strings.Repeat("x", 70)), time.Now())
	if all := b.all(); len(all) != 1 || all[0].Subject != "large" {
		t.Errorf("kept %d", len(all))
	}
	b.put(envelope{}, make([]byte, 101), time.Now())
	if all := b.all(); len(all) != 0 || b.size != 0 {
		t.Errorf("kept %d", len(all))
	}
}

func TestATakenPortIsNamedInTheError(t *testing.T) {
	t.Parallel()
	s := start(t)
	if _, err := Start(Config{Port: s.Port()}); err == nil || !strings.Contains(err.Error(), "port for mails") {
		t.Errorf("opened twice: %v", err)
	}
	other, err := Start(Config{Port: s.Port(), OrAnother: true})
	if err != nil || other.Port() == s.Port() {
		t.Fatalf("took %v, %v", other, err)
	}
	if err := other.Close(); err != nil {
		t.Error(err)
	}
}
