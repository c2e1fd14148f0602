package funchost

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// hasty has no time for anybody; what a test waits for is beyond each of these many times over.
var hasty = timeouts{header: 100 * time.Millisecond, read: 200 * time.Millisecond, write: 400 * time.Millisecond, idle: 100 * time.Millisecond}

// drip sends a text, then a byte every few milliseconds, until the other side has enough of it.
func drip(conn net.Conn, text string) {
	_, err := io.WriteString(conn, text)
	tick := time.NewTicker(hasty.header / 20)
	defer tick.Stop()
	for err == nil {
		<-tick.C
		_, err = conn.Write([]byte("a"))
	}
}

func TestWhoIsSlowIsSentAway(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		said   string // and then it drips
		answer string // the beginning of what comes before the end
	}{
		"in its request line":         {"GE", "HTTP/1.1 400 "},
		"in its headers":              {"GET / HTTP/1.1\r\nHost: x\r\nX-A: ", ""},
		"in a body of known size":     {"POST /read HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n", "HTTP/1.1 200 OK\r\n"},
		"in a body of chunks":         {"POST /read HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nfffff\r\n", "HTTP/1.1 200 OK\r\n"},
		"in a body that nobody reads": {"POST /unread HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n", "HTTP/1.1 200 OK\r\n"},
		"in its second request":       {"GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nX-A: ", "HTTP/1.1 200 OK\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := door(t, func(_ http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/unread" {
					_, _ = io.Copy(io.Discard, r.Body)
				}
			}, hasty)
			conn := s.dial(t)
			dripping := make(chan struct{})
			go func() { defer close(dripping); drip(conn, c.said) }()
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

func TestWhoSaysNothingIsSentAway(t *testing.T) {
	t.Parallel()
	s := door(t, func(http.ResponseWriter, *http.Request) {}, hasty)
	for name, said := range map[string]string{"at all": "", "more": "GET / HTTP/1.1\r\nHost: x\r\n\r\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if answer := s.raw(t, said); (answer == "") != (said == "") {
				t.Errorf("answered %q", answer)
			}
		})
	}
}

func TestWhoNeverReadsTheAnswerIsSentAway(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 1)
	s := door(t, func(w http.ResponseWriter, _ *http.Request) {
		megabyte := bytes.Repeat([]byte("a"), 1<<20)
		for range 1000 { // no socket holds that
			if _, err := w.Write(megabyte); err != nil {
				ended <- err
				return
			}
		}
		ended <- nil
	}, hasty)
	if _, err := io.WriteString(s.dial(t), "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if err := await(t, "the end of the answer", ended); err == nil {
		t.Error("all was written")
	}
}

func TestAnAnswerMayTakeLongerThanItsRequest(t *testing.T) {
	t.Parallel()
	s := door(t, func(w http.ResponseWriter, r *http.Request) {
		held := time.NewTimer(hasty.read + hasty.read/4) // as ?wait= does
		defer held.Stop()
		select {
		case <-held.C:
			_, _ = io.WriteString(w, "held")
		case <-r.Context().Done():
		}
	}, hasty)
	if got := s.do("GET", "/", ""); got.body != "held" {
		t.Errorf("answered %+v", got)
	}
}
