package gateway_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/functions/gateway"
)

// dial opens a connection to a gateway.
func (c *client) dial() net.Conn {
	c.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(c.base, "http://"))
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		c.t.Fatal(err)
	}
	return conn
}

// A client that writes its whole body before it reads would find the connection reset.
func TestBodyOverTheLimitIsAnsweredWhileTheClientWrites(t *testing.T) {
	t.Parallel()
	h := open(t)
	const bytes = 12 << 20
	announced := fmt.Sprintf("Content-Length: %d\r\n\r\n", bytes)
	for name, c := range map[string]struct {
		head string
		body io.Reader
	}{
		"of a known length": {announced, io.LimitReader(unending(' '), bytes)},
		"in chunks": {"Transfer-Encoding: chunked\r\n\r\n", io.MultiReader(
			strings.NewReader(fmt.Sprintf("%x\r\n", bytes)), io.LimitReader(unending(' '), bytes), strings.NewReader("\r\n0\r\n\r\n"))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := h.dial()
			if _, err := io.WriteString(conn, "POST /api/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"+c.head); err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(conn, c.body); err != nil {
				t.Fatalf("write body: %v", err)
			}
			res, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if body, err := io.ReadAll(res.Body); res.StatusCode != http.StatusRequestEntityTooLarge || !res.Close || err != nil {
				t.Errorf("answered %d, closes %v, %v: %s", res.StatusCode, res.Close, err, body)
			}
		})
	}
}

func TestPythonClientSeesThatItsBodyIsTooLarge(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3")
	}
	h := open(t)
	const script = `
import sys, urllib.error, urllib.request
request = urllib.request.Request(sys.argv[1], data=b" " * (12 << 20), headers={"Content-Type": "application/json"})
try:
    urllib.request.urlopen(request, timeout=60)
except urllib.error.HTTPError as e:
    print(e.code, e.read().decode())
`
	out, err := exec.CommandContext(t.Context(), python, "-c", script, h.base+"/api/jobs").CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "413 ") || !strings.Contains(string(out), "API.PAYLOAD_TOO_LARGE") {
		t.Errorf("%v: %s", err, out)
	}
}

// The gateway stops reading a body that never ends.
func TestEndlessBodyIsNotReadForever(t *testing.T) {
	t.Parallel()
	conn := open(t).dial()
	if _, err := io.WriteString(conn, "POST /api/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"+
		"Content-Length: 1000000000000\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	n, err := io.Copy(conn, unending(' '))
	if e, ok := err.(net.Error); err == nil || ok && e.Timeout() { //nolint:errorlint // io.Copy does not wrap it
		t.Errorf("%d bytes were taken: %v", n, err)
	}
	if n > 128<<20 {
		t.Errorf("%d bytes were taken", n)
	}
}

func TestBodyThatStopsArrivingIs408(t *testing.T) {
	t.Parallel()
	h := open(t)
	f := mustNew(t, gateway.Config{Auth: gateway.AuthOff, Queues: []string{"default"}, Broker: h.broker.ask}, h.store.Store)
	server := httptest.NewUnstartedServer(f.Handler())
	server.Config.ReadHeaderTimeout, server.Config.ReadTimeout = time.Minute, 200*time.Millisecond
	server.Start()
	t.Cleanup(server.Close)
	for path, contentType := range map[string]string{
		"/api/jobs": "application/json", "/api/jobs/batch": "application/json", "/events": "application/cloudevents+json",
	} {
		conn := (&client{t: t, base: server.URL}).dial()
		if _, err := io.WriteString(conn, "POST "+path+" HTTP/1.1\r\nHost: localhost\r\nContent-Type: "+contentType+
			"\r\nContent-Length: 1000\r\n\r\n{"); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil || res.StatusCode != http.StatusRequestTimeout || !res.Close || !strings.Contains(string(body), "API.REQUEST_TIMEOUT") {
			t.Errorf("%s: answered %d %s, %v", path, res.StatusCode, body, err)
		}
	}
}
