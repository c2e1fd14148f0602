package funchost

import (
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/funchost/httpserver"
)

// raw sends bytes over a new connection, and returns the whole answer until the server closes it.
func (s *site) raw(t *testing.T, request string) string {
	t.Helper()
	conn := s.dial(t)
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		_, _ = io.WriteString(conn, request) // the answer may come before everything is sent
	}()
	answer, err := io.ReadAll(conn)
	if e, ok := err.(net.Error); ok && e.Timeout() { //nolint:errorlint // io.ReadAll hands it on as it is
		t.Errorf("the connection was not ended after %.300q", answer)
	}
	_ = conn.Close()
	<-sent
	return string(answer)
}

func (s *site) dial(t *testing.T) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patient)); err != nil {
		t.Fatal(err)
	}
	return conn
}

const (
	post     = "POST /first HTTP/1.1\r\nHost: x\r\n"
	smuggled = "GET /smuggled HTTP/1.1\r\nHost: x\r\nX-Rest: "
	last     = "\r\n\r\nGET /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
)

// attacks are requests that a proxy on the way could read as two, or two that it could read as one. A request that two
// readers could read differently must be refused, or be the last one that is read on its connection.
var attacks = map[string]struct {
	request string
	status  string
	seen    []string // each request that reaches the function, as path and body
}{
	"Content-Length and chunked, with a request after the last chunk": {
		post + "Content-Length: 50\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled, "200", []string{"/first "}},
	"chunked and Content-Length, with a request in a chunk": {
		post + "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n1e\r\nGET /smuggled HTTP/1.1\r\nHost: \r\n0\r\n\r\n", "200",
		[]string{"/first GET /smuggled HTTP/1.1\r\nHost: "}},
	"chunked in a folded header beside Content-Length": {
		post + "Content-Length: 50\r\nTransfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n" + smuggled, "200", []string{"/first "}},
	"chunked behind a bare LF": {
		post + "Content-Length: 50\r\nX-A: a\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled, "200", []string{"/first "}},
	"chunked behind a bare CR": {
		post + "Content-Length: 50\r\nX-A: a\rTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled, "400", nil},
	"two Content-Lengths that differ":    {post + "Content-Length: 0\r\nContent-Length: 50\r\n\r\n" + smuggled, "400", nil},
	"two Content-Lengths in one":         {post + "Content-Length: 0, 50\r\n\r\n" + smuggled, "400", nil},
	"the same Content-Length twice":      {post + "Content-Length: 1\r\nContent-Length: 1\r\n\r\na", "200", []string{"/first a", "/last "}},
	"a Content-Length with a sign":       {post + "Content-Length: +50\r\n\r\n" + smuggled, "400", nil},
	"a Content-Length below nothing":     {post + "Content-Length: -1\r\n\r\n" + smuggled, "400", nil},
	"a Content-Length in hex":            {post + "Content-Length: 0x0\r\n\r\n" + smuggled, "400", nil},
	"a Content-Length in a folded line":  {post + "Content-Length: 0\r\n 5\r\n\r\n" + smuggled, "400", nil},
	"a Content-Length beyond 64 bits":    {post + "Content-Length: 18446744073709551616\r\n\r\n" + smuggled, "400", nil},
	"an empty Content-Length":            {post + "Content-Length:\r\n\r\n" + smuggled, "400", nil},
	"a Content-Length before its colon":  {post + "Content-Length : 50\r\n\r\n" + smuggled, "400", nil},
	"chunked twice":                      {post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled, "501", nil},
	"chunked twice in one":               {post + "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n" + smuggled, "501", nil},
	"chunked and identity":               {post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + smuggled, "501", nil},
	"an encoding that is almost chunked": {post + "Content-Length: 50\r\nTransfer-Encoding: xchunked\r\n\r\n" + smuggled, "501", nil},
	"chunked behind a vertical tab":      {post + "Content-Length: 50\r\nTransfer-Encoding: \x0bchunked\r\n\r\n" + smuggled, "400", nil},
	"chunked before a space":             {post + "Content-Length: 50\r\nTransfer-Encoding : chunked\r\n\r\n" + smuggled, "400", nil},
	"chunked in quotes":                  {post + "Content-Length: 50\r\nTransfer-Encoding: \"chunked\"\r\n\r\n" + smuggled, "501", nil},
	"a compressed body in chunks":        {post + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" + smuggled, "501", nil},
	"chunks in HTTP/1.0": {
		"POST /first HTTP/1.0\r\nHost: x\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled, "200",
		[]string{"/first "}},
	"chunks that end in bare LF": {post + "Transfer-Encoding: chunked\r\n\r\n1\na\n0\n\n" + smuggled, "200", []string{"/first !"}},
	"a chunk longer than its declared size": {
		post + "Transfer-Encoding: chunked\r\n\r\n1\r\nabcd\r\n0\r\n\r\n" + smuggled, "200", []string{"/first a!"}},
	"a chunk beyond 64 bits": {
		post + "Transfer-Encoding: chunked\r\n\r\n10000000000000001\r\na\r\n0\r\n\r\n" + smuggled, "200", []string{"/first !"}},
	"a chunk of less than nothing": {
		post + "Transfer-Encoding: chunked\r\n\r\n-1\r\na\r\n0\r\n\r\n" + smuggled, "200", []string{"/first !"}},
	"a Content-Length behind the chunks": {
		post + "Trailer: Content-Length\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: 50\r\n\r\n" + smuggled, "400", nil},
	"an unread body": {
		"GET /unread HTTP/1.1\r\nHost: x\r\nContent-Length: 35\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x", "200",
		[]string{"/unread -", "/last "}},
	"a header in two lines": {
		"GET /first HTTP/1.1\r\nHost: x\r\nX-A: a\r\n GET /smuggled HTTP/1.1", "200", []string{"/first ", "/last "}},
	"lines that end in bare LF":   {"GET /first HTTP/1.1\nHost: x\nConnection: close\n\n" + smuggled, "200", []string{"/first "}},
	"a NUL in a header":           {post + "X-A: a\x00b\r\n\r\n" + smuggled, "400", nil},
	"a NUL in a header's name":    {post + "X-\x00A: a\r\n\r\n" + smuggled, "400", nil},
	"a NUL in the path":           {"GET /\x00first HTTP/1.1\r\nHost: x\r\n\r\n" + smuggled, "400", nil},
	"a space in a header's name":  {post + "X A: a\r\n\r\n" + smuggled, "400", nil},
	"a header without a colon":    {post + "X-A\r\n\r\n" + smuggled, "400", nil},
	"a line before the headers":   {"POST /first HTTP/1.1\r\n Content-Length: 50\r\nHost: x\r\n\r\n" + smuggled, "400", nil},
	"two hosts":                   {post + "Host: y\r\n\r\n" + smuggled, "400", nil},
	"no host":                     {"GET /first HTTP/1.1\r\n\r\n" + smuggled, "400", nil},
	"a host with a path":          {"GET /first HTTP/1.1\r\nHost: x/y\r\n\r\n" + smuggled, "400", nil},
	"a target of another host":    {"GET http://evil.example/first HTTP/1.1\r\nHost: x", "200", []string{"/first evil.example ", "/last "}},
	"a line of HTTP/0.9":          {"GET /first\r\n\r\n" + smuggled, "400", nil},
	"a version that there is not": {"GET /first HTTP/3.7\r\nHost: x\r\n\r\n" + smuggled, "505", nil},
	"HTTP/2 without TLS":          {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + smuggled, "400", nil},
	"an upgrade to HTTP/2": {
		"GET /first HTTP/1.1\r\nHost: x\r\nUpgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA", "200",
		[]string{"/first ", "/last "}},
	"an expectation of nonsense": {post + "Expect: the-unexpected\r\nContent-Length: 0\r\n\r\n" + smuggled, "417", nil},
}

func TestAmbiguousRequestsAreNotSmuggled(t *testing.T) {
	t.Parallel()
	for name, attack := range attacks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var seen []string
			s := newHTTPSite(t, func(_ http.ResponseWriter, r *http.Request) {
				what := r.URL.Path + " "
				if r.Host != "x" {
					what += r.Host + " "
				}
				if r.URL.Path == "/unread" {
					what += "-"
				} else if body, err := io.ReadAll(r.Body); err != nil {
					what += string(body) + "!"
				} else {
					what += string(body)
				}
				mu.Lock()
				defer mu.Unlock()
				seen = append(seen, what)
			}, httpserver.Timeouts{})
			answer := s.raw(t, attack.request+last)
			if !strings.HasPrefix(answer, "HTTP/1.1 "+attack.status+" ") && !strings.HasPrefix(answer, "HTTP/1.0 "+attack.status+" ") {
				t.Errorf("answered %.300q, want %s", answer, attack.status)
			}
			mu.Lock()
			defer mu.Unlock()
			if !slices.Equal(seen, attack.seen) {
				t.Errorf("the function saw %q, want %q", seen, attack.seen)
			}
		})
	}
}
