package funchost

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/funchost/httpserver"
	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// newHTTPSite returns a site whose function has HTTP of its own.
func newHTTPSite(t *testing.T, handler http.HandlerFunc, serving httpserver.Timeouts) *site {
	t.Helper()
	return newSite(t, Config{FuncTransport: TransportKafka, timeouts: serving}, Function{HTTP: handler})
}

func TestAnswersHaveTheHeadersThatRestrictBrowsers(t *testing.T) {
	t.Parallel()
	s := newHTTPSite(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/page" {
			w.Header().Set("Content-Security-Policy", "default-src 'self'")
		}
	}, httpserver.Timeouts{})
	for _, c := range []struct{ method, path string }{
		{"GET", "/own"}, {"GET", "/page"}, {"GET", "/health/liveness"}, {"GET", "/health/readiness"}, {"GET", "/metrics"},
		{"OPTIONS", "/own"}, {"OPTIONS", "/metrics"}, {"POST", "/health/liveness"},
	} {
		req, err := http.NewRequestWithContext(t.Context(), c.method, s.url+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Origin", "https://evil.example")
		req.Header.Set("Access-Control-Request-Method", "POST")
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Referrer-Policy": "no-referrer",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
			"Server": "", "Strict-Transport-Security": "", "X-Powered-By": "",
		} {
			if got := strings.Join(res.Header.Values(name), "|"); got != want {
				t.Errorf("%s %s: %s: %q, want %q", c.method, c.path, name, got, want)
			}
		}
		policy := "default-src 'none'; frame-ancestors 'none'"
		if c.path == "/page" {
			policy = "default-src 'self'"
		}
		if got := res.Header.Get("Content-Security-Policy"); got != policy {
			t.Errorf("%s %s: Content-Security-Policy %q", c.method, c.path, got)
		}
		for name := range res.Header {
			if strings.HasPrefix(name, "Access-Control-") {
				t.Errorf("%s %s: %s", c.method, c.path, name)
			}
		}
	}
}

func TestDebuggingIsNotServed(t *testing.T) {
	t.Parallel()
	s := newSite(t, Config{}, Function{Tick: neverTick})
	for _, path := range []string{"/debug", "/debug/pprof/", "/debug/pprof/heap", "/debug/vars", "/debug/requests"} {
		if got := s.do("GET", path, ""); got.status != http.StatusNotFound {
			t.Errorf("%s answered %+v", path, got)
		}
	}
}

func TestAPageOfAnotherSiteCannotSendEvents(t *testing.T) {
	t.Parallel()
	handled := 0
	s := newSite(t, Config{}, Function{Handle: func(_ context.Context, _ []jobevent.Item) ([]jobevent.Item, error) {
		handled++
		return nil, nil
	}})
	own := strings.TrimPrefix(s.url, "http://")
	for _, c := range []struct {
		headers []string
		status  int
	}{
		{[]string{"Sec-Fetch-Site", "cross-site"}, http.StatusForbidden},
		{[]string{"Sec-Fetch-Site", "same-site"}, http.StatusForbidden},
		{[]string{"Origin", "https://evil.example"}, http.StatusForbidden},
		{[]string{"Origin", "null"}, http.StatusForbidden},
		{[]string{"Origin", "http://" + own}, http.StatusAccepted},
		{[]string{"Sec-Fetch-Site", "same-origin"}, http.StatusAccepted},
		{nil, http.StatusAccepted},
	} {
		if got := s.do("POST", "/", "{}", append(binary("1"), c.headers...)...); got.status != c.status {
			t.Errorf("%v answered %+v", c.headers, got)
		}
	}
	if handled != 3 {
		t.Errorf("%d were handled", handled)
	}
}

func TestACompressedEventIsRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t, Config{}, Function{Tick: neverTick})
	for encoding, want := range map[string]int{"gzip": 415, "identity, gzip": 415, "br": 415, "identity": 400} {
		if got := s.do("POST", "/", "{}", append(binary("1"), "Content-Encoding", encoding)...); got.status != want {
			t.Errorf("%s answered %+v", encoding, got)
		}
	}
}

func TestHeadersHaveALimit(t *testing.T) {
	t.Parallel()
	s := newHTTPSite(t, func(http.ResponseWriter, *http.Request) {}, httpserver.Timeouts{})
	const request = "GET /%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-A: %s\r\n%s\r\n"
	fill := httpserver.MaxHeader - len(fmt.Sprintf(request, "", "", ""))
	for name, c := range map[string]struct {
		path, value, more string
		want              string
	}{
		"just as much as there may be": {"", strings.Repeat("a", fill), "", "200"},
		"one byte more":                {"", strings.Repeat("a", fill+1), "", "431"},
		"a value without end":          {"", strings.Repeat("a", 1<<20), "", "431"},
		"a path without end":           {strings.Repeat("a", 1<<20), "", "", "431"},
		"very many headers":            {"", "", strings.Repeat("X-B: b\r\n", 100_000), "431"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answer := s.raw(t, fmt.Sprintf(request, c.path, c.value, c.more))
			if !strings.HasPrefix(answer, "HTTP/1.1 "+c.want+" ") {
				t.Errorf("answered %.200q", answer)
			}
		})
	}
}

// docs/errors.md describes these answers: net/http sends them before any handler runs, and no handler can change them.
func TestNetHTTPAnswersInvalidRequestsInPlainText(t *testing.T) {
	t.Parallel()
	s := newHTTPSite(t, func(http.ResponseWriter, *http.Request) { t.Error("a handler was asked") }, httpserver.Timeouts{})
	for request, want := range map[string]string{
		"GET /api/jobs/%zz HTTP/1.1\r\nHost: x\r\n\r\n":                 "400 Bad Request",
		"GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n":                  "400 Bad Request",
		"GET / HTTP/1.1\r\n\r\n":                                        "400 Bad Request: missing required Host header",
		"GET /\r\n\r\n":                                                 "400 Bad Request",
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n": "501 Not Implemented",
		"GET / HTTP/3.0\r\nHost: x\r\n\r\n":                             "505 HTTP Version Not Supported",
		"GET / HTTP/1.1\r\nHost: x\r\nX-A: " + strings.Repeat("a", httpserver.MaxHeader) + "\r\n\r\n": "431 Request Header Fields Too Large",
	} {
		answer := s.raw(t, request)
		status, _, _ := strings.Cut(want, ":")
		if !strings.HasPrefix(answer, "HTTP/1.1 "+status) || !strings.Contains(answer, "\r\nConnection: close\r\n") ||
			!strings.Contains(answer, "\r\nContent-Type: text/plain; charset=utf-8\r\n") || !strings.Contains(answer, want) {
			t.Errorf("%.60q: answered %q, want %s", request, answer, want)
		}
	}
}

var patient = time.Minute // how long a test waits for an event that must come
