package funchost

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/funchost/httpserver"
)

const (
	brief     = 200 * time.Millisecond // a limit that a test exceeds
	fair      = 2 * time.Second        // a limit that a step before keeps, however busy the machine is
	unhurried = time.Hour              // no test waits this long
)

// hasty returns limits for a request and none for its answer.
func hasty(header, read time.Duration) httpserver.Timeouts {
	return httpserver.Timeouts{Header: header, Read: read, Write: unhurried, Idle: unhurried}
}

// drip sends a text, then a byte every few milliseconds until the server closes the connection.
func drip(conn net.Conn, text string) {
	_, err := io.WriteString(conn, text)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for err == nil {
		<-tick.C
		_, err = conn.Write([]byte("a"))
	}
}

func TestASlowClientIsDisconnected(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		serving httpserver.Timeouts
		sends   string // at once; then it drips
		answer  string // the beginning of the answer
	}{
		"in its request line": {hasty(fair, unhurried), "GE", "HTTP/1.1 400 "},
		"in its headers":      {hasty(brief, unhurried), "GET / HTTP/1.1\r\nHost: x\r\nX-A: ", ""},
		"in a body of known size": {
			hasty(unhurried, brief), "POST /read HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n", "HTTP/1.1 200 OK\r\n"},
		"in a body of chunks": {
			hasty(unhurried, brief), "POST /read HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nfffff\r\n", "HTTP/1.1 200 OK\r\n"},
		"in an unread body": {
			hasty(unhurried, brief), "POST /unread HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n", "HTTP/1.1 200 OK\r\n"},
		"in its second request": {
			hasty(fair, unhurried), "GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nX-A: ", "HTTP/1.1 200 OK\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newHTTPSite(t, func(_ http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/unread" {
					_, _ = io.Copy(io.Discard, r.Body)
				}
			}, c.serving)
			conn := s.dial(t)
			dripping := make(chan struct{})
			go func() { defer close(dripping); drip(conn, c.sends) }()
			answer, err := io.ReadAll(conn)
			if e, ok := err.(net.Error); ok && e.Timeout() { //nolint:errorlint // io.ReadAll hands it on as it is
				t.Error("it is still there")
			}
			if !strings.HasPrefix(string(answer), c.answer) || c.answer == "" && len(answer) > 0 {
				t.Errorf("answered %q", answer)
			}
			_ = conn.Close()
			<-dripping
		})
	}
}

func TestAnIdleClientIsDisconnected(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		serving httpserver.Timeouts
		sends   string
	}{
		"at all": {hasty(brief, unhurried), ""},
		"more": {
			httpserver.Timeouts{Header: unhurried, Read: unhurried, Write: unhurried, Idle: brief}, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newHTTPSite(t, func(http.ResponseWriter, *http.Request) {}, c.serving)
			if answer := s.raw(t, c.sends); (answer == "") != (c.sends == "") {
				t.Errorf("answered %q", answer)
			}
		})
	}
}

func TestAClientThatDoesNotReadItsAnswerIsDisconnected(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 1)
	s := newHTTPSite(t, func(w http.ResponseWriter, _ *http.Request) {
		megabyte := bytes.Repeat([]byte("a"), 1<<20)
		for range 1000 { // more than a socket's buffer
			if _, err := w.Write(megabyte); err != nil {
				ended <- err
				return
			}
		}
		ended <- nil
	}, httpserver.Timeouts{Header: unhurried, Read: unhurried, Write: brief, Idle: unhurried})
	if _, err := io.WriteString(s.dial(t), "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if err := await(t, "the end of the answer", ended); err == nil {
		t.Error("all was written")
	}
}

func TestAnAnswerMayTakeLongerThanItsRequest(t *testing.T) {
	t.Parallel()
	s := newHTTPSite(t, func(w http.ResponseWriter, r *http.Request) {
		held := time.NewTimer(brief + brief/4) // as with ?wait=
		defer held.Stop()
		select {
		case <-held.C:
			_, _ = io.WriteString(w, "held")
		case <-r.Context().Done():
		}
	}, hasty(unhurried, brief))
	if got := s.do("GET", "/", ""); got.body != "held" {
		t.Errorf("answered %+v", got)
	}
}
