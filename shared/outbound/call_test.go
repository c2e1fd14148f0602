package outbound

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const here = "127.0.0.1"

func client(t testing.TB, allow ...string) *Client {
	t.Helper()
	c, err := New(Config{Allow: allow})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func get(ctx context.Context, t testing.TB, c *Client, url string, atMost int64) (*Answer, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatalf("%s: %v", url, err)
	}
	return c.Do(r, atMost)
}

func serve(t testing.TB, h http.HandlerFunc) (url string) {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL
}

// raw serves each connection by hand, until the client has closed it.
func raw(t testing.TB, answer func(conn net.Conn)) (url string) {
	t.Helper()
	listener, err := net.Listen("tcp", here+":0")
	if err != nil {
		t.Fatal(err)
	}
	var open sync.WaitGroup
	open.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			open.Go(func() {
				defer func() { _ = conn.Close() }()
				_, _ = conn.Read(make([]byte, 4096)) // the request
				answer(conn)
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		open.Wait()
	})
	return "http://" + listener.Addr().String()
}

// forever writes until the other side has enough.
func forever(w io.Writer, text string) {
	for {
		if _, err := io.WriteString(w, text); err != nil {
			return
		}
	}
}

// hold waits until the other side closes.
func hold(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }

func TestAnAnswerIsReadUpToItsLimit(t *testing.T) {
	t.Parallel()
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Method", r.Method)
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, "0123456789")
	})
	c := client(t, here)
	for atMost, want := range map[int64]string{0: "", 9: "012345678", 10: "0123456789", 11: "0123456789"} {
		a, err := get(t.Context(), t, c, url, atMost)
		if err != nil || a.Status != 202 || a.Header.Get("X-Method") != "GET" || string(a.Body) != want || a.Truncated != (atMost < 10) {
			t.Errorf("at most %d: %+v, %v", atMost, a, err)
		}
	}
}

func TestWhatNeverEndsIsCut(t *testing.T) {
	t.Parallel()
	c := client(t, here)
	a, err := get(t.Context(), t, c, serve(t, func(w http.ResponseWriter, _ *http.Request) { forever(w, strings.Repeat("x", 1<<16)) }), 1<<20)
	if err != nil || len(a.Body) != 1<<20 || !a.Truncated {
		t.Errorf("a body without end: %v", err)
	}
	for name, answer := range map[string]func(net.Conn){
		"headers without end":        func(conn net.Conn) { forever(conn, "HTTP/1.1 200 OK\r\nX-A: b\r\n") },
		"one header without end":     func(conn net.Conn) { forever(conn, "HTTP/1.1 200 OK\r\nX-A: "+strings.Repeat("b", 1<<16)) },
		"a status line without end":  func(conn net.Conn) { forever(conn, "HTTP/1.1 200 "+strings.Repeat("b", 1<<16)) },
		"early hints without end":    func(conn net.Conn) { forever(conn, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n") },
		"trailers without end":       func(conn net.Conn) { trailers(conn) },
		"extensions of a chunk, too": func(conn net.Conn) { chunkExtensions(conn) },
	} {
		if a, err := get(t.Context(), t, c, raw(t, answer), 1<<20); err == nil || errors.Is(err, ErrRefused) {
			t.Errorf("%s: %+v, %v", name, a, err)
		}
	}
}

func trailers(conn net.Conn) {
	_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-A\r\n\r\n1\r\nx\r\n0\r\n")
	forever(conn, "X-A: "+strings.Repeat("b", 1<<12)+"\r\n")
}

func chunkExtensions(conn net.Conn) {
	_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
	forever(conn, "1;"+strings.Repeat("a=b;", 1<<10)+"\r\nx\r\n")
}

func TestWhoIsSlowIsNotWaitedForForEver(t *testing.T) {
	t.Parallel()
	c := client(t, here)
	c.patience = 50 * time.Millisecond
	slowBody := func(status string) string {
		return raw(t, func(conn net.Conn) {
			_, _ = io.WriteString(conn, "HTTP/1.1 "+status+"\r\nContent-Length: 10\r\n\r\nabc")
			hold(conn)
		})
	}
	if a, err := get(t.Context(), t, c, slowBody("200 OK"), 100); !errors.Is(err, errSlowBody) {
		t.Errorf("a slow body: %+v, %v", a, err)
	}
	// If the host refuses, the status counts even without the whole body.
	if a, err := get(t.Context(), t, c, slowBody("410 Gone"), 100); err != nil || a.Status != 410 || !a.Truncated || string(a.Body) != "abc" {
		t.Errorf("a refusal with a slow body: %+v, %v", a, err)
	}
	why := errors.New("because")
	for name, sent := range map[string]string{"nothing": "", "half a header": "HTTP/1.1 200 OK\r\nX-A"} {
		ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, why)
		url := raw(t, func(conn net.Conn) {
			_, _ = io.WriteString(conn, sent)
			hold(conn)
		})
		if a, err := get(ctx, t, c, url, 100); err != why { //nolint:errorlint // itself, not wrapped
			t.Errorf("a server that sends %s: %+v, %v", name, a, err)
		}
		cancel()
	}
}

func TestWhoBreaksOffHasNotAnswered(t *testing.T) {
	t.Parallel()
	c := client(t, here)
	reset := func(conn net.Conn) { _ = conn.(*net.TCPConn).SetLinger(0) }
	for name, url := range map[string]string{
		"a reset": raw(t, reset),
		"an end":  raw(t, func(net.Conn) {}),
		"a reset within the body": raw(t, func(conn net.Conn) {
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab")
			reset(conn)
		}),
		"an end within the body": raw(t, func(conn net.Conn) { _, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab") }),
		"another protocol":       raw(t, func(conn net.Conn) { _, _ = io.WriteString(conn, "SSH-2.0-OpenSSH_9.9\r\n") }),
		"two lengths": raw(t, func(conn net.Conn) {
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab")
		}),
		"a closed port": "http://" + here + ":1",
	} {
		if a, err := get(t.Context(), t, c, url, 100); err == nil || errors.Is(err, ErrRefused) {
			t.Errorf("%s: %+v, %v", name, a, err)
		}
	}
	a, err := get(t.Context(), t, c, raw(t, func(conn net.Conn) {
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
		hold(conn)
	}), 100)
	if err != nil || a.Status != 101 || !a.Truncated {
		t.Errorf("another protocol's connection: %+v, %v", a, err)
	}
}

func TestARedirectIsAnAnswerAndNotFollowed(t *testing.T) {
	t.Parallel()
	var followed atomic.Int32
	mux := http.NewServeMux()
	mux.HandleFunc("/followed", func(http.ResponseWriter, *http.Request) { followed.Add(1) })
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		var status int
		_, _ = fmt.Sscan(r.URL.Path[1:], &status)
		w.Header().Set("Location", "http://"+r.Host+"/followed")
		w.Header().Set("Refresh", "0; url=/followed")
		w.WriteHeader(status)
	})
	url := serve(t, mux.ServeHTTP)
	c := client(t, here)
	for _, status := range []int{300, 301, 302, 303, 307, 308} {
		if a, err := get(t.Context(), t, c, fmt.Sprint(url, "/", status), 100); err != nil || a.Status != status {
			t.Errorf("%d: %+v, %v", status, a, err)
		}
	}
	if n := followed.Load(); n != 0 {
		t.Errorf("followed %d times", n)
	}
}

func TestNoProxyOfTheEnvironmentIsAsked(t *testing.T) {
	var asked atomic.Int32
	proxy := serve(t, func(http.ResponseWriter, *http.Request) { asked.Add(1) })
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"} {
		t.Setenv(name, proxy)
	}
	t.Setenv("NO_PROXY", "")
	c := client(t, "127.0.0.2")
	a, err := get(t.Context(), t, c, "http://127.0.0.1:1/", 100)
	if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "127.0.0.1:1 is not allowed to be called: OUTBOUND_ALLOW ") {
		t.Errorf("%+v, %v", a, err)
	}
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "itself") })
	if a, err := get(t.Context(), t, client(t, here), url, 100); err != nil || string(a.Body) != "itself" {
		t.Errorf("%+v, %v", a, err)
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("asked %d times", n)
	}
}

func TestConnectionsAreKeptButNotMany(t *testing.T) {
	t.Parallel()
	var opened atomic.Int32
	all := make(chan struct{})
	var waiting sync.WaitGroup
	const many = 20
	waiting.Add(many)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/together" {
			waiting.Done()
			<-all
		}
	}))
	var idle atomic.Int32
	closed := make(chan struct{}, many)
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		switch s { //nolint:exhaustive // the others say nothing here
		case http.StateNew:
			opened.Add(1)
		case http.StateIdle:
			idle.Add(1)
		case http.StateClosed:
			closed <- struct{}{}
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	c := client(t, here)
	for range 5 {
		if _, err := get(t.Context(), t, c, server.URL, 100); err != nil {
			t.Fatal(err)
		}
	}
	if n := opened.Load(); n != 1 {
		t.Errorf("%d connections for calls one after another", n)
	}
	var calls sync.WaitGroup
	for range many {
		calls.Go(func() {
			if _, err := get(t.Context(), t, c, server.URL+"/together", 100); err != nil {
				t.Error(err)
			}
		})
	}
	waiting.Wait()
	close(all)
	calls.Wait()
	tooLate := time.After(10 * time.Second)
	for n := range opened.Load() - maxIdleHost {
		select {
		case <-closed:
		case <-tooLate:
			t.Fatalf("%d opened, %d closed", opened.Load(), n)
		}
	}
}

func TestOverTLSTheSameHolds(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/headers" {
			for i := range 2000 {
				w.Header().Set(fmt.Sprint("X-", i), strings.Repeat("x", 100))
			}
		}
		_, _ = io.WriteString(w, r.Proto)
		if r.URL.Path == "/endless" {
			forever(w, strings.Repeat("x", 1<<16))
		}
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	if a, err := get(t.Context(), t, client(t, here), server.URL, 100); err == nil || errors.Is(err, ErrRefused) {
		t.Errorf("a certificate of an unknown CA: %+v, %v", a, err)
	}
	if a, err := get(t.Context(), t, client(t), server.URL, 100); !errors.Is(err, ErrRefused) {
		t.Errorf("a private address: %+v, %v", a, err)
	}
	c := client(t, here)
	c.transport.TLSClientConfig = server.Client().Transport.(*http.Transport).TLSClientConfig
	if a, err := get(t.Context(), t, c, server.URL, 100); err != nil || string(a.Body) != "HTTP/2.0" {
		t.Errorf("%+v, %v", a, err)
	}
	if a, err := get(t.Context(), t, c, server.URL+"/endless", 1000); err != nil || len(a.Body) != 1000 || !a.Truncated {
		t.Errorf("a body without end: %v", err)
	}
	if a, err := get(t.Context(), t, c, server.URL+"/headers", 100); err == nil {
		t.Errorf("too many headers: %d", len(a.Header))
	}
}

func TestWhatMayGoBetterAnotherTime(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]bool{
		200: false, 301: false, 400: false, 401: false, 403: false, 404: false, 408: true, 409: false, 410: false, 422: false, 425: true,
		429: true, 499: false, 500: true, 501: true, 503: true, 599: true,
	} {
		if Retryable(status) != want {
			t.Errorf("%d: %v", status, !want)
		}
	}
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "17")
		if r.URL.Path == "/busy" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	for path, want := range map[string]time.Duration{"/busy": 17 * time.Second, "/": 0} {
		if a, err := get(t.Context(), t, client(t, here), url+path, 100); err != nil || a.RetryAfter != want {
			t.Errorf("%s: %+v, %v", path, a, err)
		}
	}
}

func TestWhatIsCompressedStaysSo(t *testing.T) {
	t.Parallel()
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = io.WriteString(w, "sent as it is, asked for "+r.Header.Get("Accept-Encoding"))
	})
	if a, err := get(t.Context(), t, client(t, here), url, 100); err != nil || string(a.Body) != "sent as it is, asked for " {
		t.Errorf("%+v, %v", a, err)
	}
}
