package proxy_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"github.com/jobweaver/jobweaver/local/suites/chaos/proxy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// side is a link between a client and a server that answers each line with itself.
type side struct {
	t        *testing.T
	link     *proxy.Link
	proxy    *proxy.Server
	received chan string // lines that the server has read
}

func newSide(t *testing.T) *side {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &side{t: t, link: proxy.NewLink(), received: make(chan string, 100)}
	served := make(chan struct{})
	go func() {
		defer close(served)
		s.serve(l)
	}()
	if s.proxy, err = proxy.Listen("127.0.0.1:0", l.Addr().String(), proxy.Always(s.link)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(s.proxy.Close(), l.Close()); err != nil {
			t.Error(err)
		}
		<-served
	})
	return s
}

// serve serves one connection after the other, so that its goroutine can be waited for.
func (s *side) serve(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		for lines := bufio.NewReader(c); err == nil; {
			var line string
			if line, err = lines.ReadString('\n'); err == nil {
				s.received <- line
				_, err = c.Write([]byte(line))
			}
		}
		_ = c.Close()
	}
}

func (s *side) dial() *net.TCPConn {
	s.t.Helper()
	c, err := net.Dial("tcp", s.proxy.Address())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Close() })
	return c.(*net.TCPConn)
}

func (s *side) send(c net.Conn, line string) {
	s.t.Helper()
	if _, err := io.WriteString(c, line); err != nil {
		s.t.Fatal(err)
	}
}

func (s *side) wantEcho(c net.Conn, line string) {
	s.t.Helper()
	got := make([]byte, len(line))
	if _, err := io.ReadFull(c, got); err != nil || string(got) != line {
		s.t.Fatalf("read %q, %v, want %q", got, err, line)
	}
}

// wantSilence checks that nothing arrives for a moment.
func (s *side) wantSilence(c net.Conn) {
	s.t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		s.t.Fatal(err)
	}
	var timeout net.Error
	if n, err := c.Read(make([]byte, 1)); n > 0 || !errors.As(err, &timeout) || !timeout.Timeout() {
		s.t.Fatalf("read %d bytes, %v, want nothing", n, err)
	}
	if err := c.SetReadDeadline(time.Time{}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *side) wantReceived(line string) {
	s.t.Helper()
	select {
	case got := <-s.received:
		if got != line {
			s.t.Fatalf("the server read %q, want %q", got, line)
		}
	case <-s.t.Context().Done():
		s.t.Fatalf("the server never read %q", line)
	}
}

func (s *side) wantReset(c net.Conn) {
	s.t.Helper()
	if _, err := io.ReadAll(c); !errors.Is(err, syscall.ECONNRESET) {
		s.t.Fatalf("read ends with %v, want a reset", err)
	}
}

// wantRefused checks that a new connection is reset, perhaps during dialling.
func (s *side) wantRefused() {
	s.t.Helper()
	c, err := net.Dial("tcp", s.proxy.Address())
	if err == nil {
		_, err = io.ReadAll(c)
		_ = c.Close()
	}
	if !errors.Is(err, syscall.ECONNRESET) {
		s.t.Fatalf("a new connection ends with %v, want a reset", err)
	}
}

func (s *side) works(c net.Conn) {
	s.t.Helper()
	s.send(c, "works\n")
	s.wantReceived("works\n")
	s.wantEcho(c, "works\n")
}

func TestAStallHoldsBackAndLosesNothing(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]proxy.Fault{
		"both ways": {StallUp: true, StallDown: true}, "requests": {StallUp: true}, "answers": {StallDown: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSide(t)
			c := s.dial()
			s.works(c)
			s.link.Set(f)
			s.send(c, "later\n")
			if !f.StallUp {
				s.wantReceived("later\n")
			}
			s.wantSilence(c)
			if f.StallUp && len(s.received) > 0 {
				t.Error("the server has read what was held back")
			}
			s.link.Set(proxy.Fault{})
			s.wantEcho(c, "later\n")
		})
	}
}

func TestARefusalResetsConnectionsOldAndNew(t *testing.T) {
	t.Parallel()
	s := newSide(t)
	c := s.dial()
	s.works(c)
	s.link.Set(proxy.Fault{Refuse: true})
	s.wantReset(c)
	s.wantRefused()
	s.link.Set(proxy.Fault{})
	s.works(s.dial())
}

func TestALostAnswerIsLostForGood(t *testing.T) {
	t.Parallel()
	s := newSide(t)
	c := s.dial()
	s.works(c)
	s.link.Set(proxy.Fault{DropDown: true})
	s.send(c, "unanswered\n")
	s.wantReceived("unanswered\n")
	s.wantSilence(c)
	s.link.Set(proxy.Fault{})
	s.wantReset(c)
	s.works(s.dial())
}

func TestOnlyTheAnswerToACommitIsLost(t *testing.T) {
	t.Parallel()
	prepared := "bind stmtcache_of_another\n"
	for name, commit := range map[string]string{"by its text": "commit\x00\n", "by its prepared name": preparedCommit} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSide(t)
			c := s.dial()
			s.link.Set(proxy.Fault{LoseCommit: true})
			s.send(c, prepared)
			s.wantReceived(prepared)
			s.wantEcho(c, prepared)
			s.send(c, commit)
			s.wantReceived(commit)
			s.wantReset(c)
		})
	}
}

// What pgx calls the statement "commit" that it has prepared: stmtcache_ and 24 bytes of its SHA-256.
const preparedCommit = "bind stmtcache_9505cacb7c710ed17125fcc6cb3669e8ddca6c8cd8af6a31\n"

func TestAHalfClosedConnectionStillCarriesRequests(t *testing.T) {
	t.Parallel()
	s := newSide(t)
	c := s.dial()
	s.works(c)
	s.link.Set(proxy.Fault{HalfClose: true})
	if rest, err := io.ReadAll(c); err != nil || len(rest) > 0 {
		t.Fatalf("read %q, %v, want the end of the stream", rest, err)
	}
	s.send(c, "still received\n")
	s.wantReceived("still received\n")
}

func TestADelayIsPassedOnEachWay(t *testing.T) {
	t.Parallel()
	s := newSide(t)
	c := s.dial()
	s.works(c)
	const delay = 60 * time.Millisecond
	s.link.Set(proxy.Fault{Delay: delay})
	began := time.Now()
	s.works(c)
	if took := time.Since(began); took < 2*delay {
		t.Errorf("the answer took %s, it was to take %s at least", took, 2*delay)
	}
}

func TestAClosedServerIsRefused(t *testing.T) {
	t.Parallel()
	p, err := proxy.Listen("127.0.0.1:0", "127.0.0.1:1", proxy.Always(proxy.NewLink()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	s := &side{t: t, proxy: p}
	s.wantRefused()
}

func TestAKafkaConnectionIsRoutedByItsClientID(t *testing.T) {
	t.Parallel()
	request := kmsg.NewPtrApiVersionsRequest()
	request.Version = 3
	formatter := kmsg.NewRequestFormatter(kmsg.FormatterClientID("gateway-1"))
	wire := append(formatter.AppendRequest(nil, request, 1), "more"...)
	chosen := ""
	link, begun, err := proxy.ByClientID(func(id string) *proxy.Link {
		chosen = id
		return proxy.NewLink()
	})(bytes.NewReader(wire))
	if err != nil || link == nil || chosen != "gateway-1" {
		t.Fatalf("routed by %q, %v", chosen, err)
	}
	if !bytes.HasPrefix(wire, begun) {
		t.Errorf("read %x of %x", begun, wire)
	}
	if _, _, err := proxy.ByClientID(nil)(strings.NewReader("GET / HTTP/1.1\r\n\r\n")); err == nil {
		t.Error("a request of HTTP was routed")
	}
}
