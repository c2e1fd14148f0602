package funchost

import (
	"cmp"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/testwait"
)

// site is a function on HTTP that publishes to a sink of the test.
type site struct {
	t    *testing.T
	url  string
	sink *seen
	stop func() error
}

// newSite hosts f on HTTP, without a clock unless the config sets one.
func newSite(t *testing.T, cfg Config, f Function) *site {
	t.Helper()
	s := &site{t: t, sink: newSeen()}
	if cfg.Sink == "" {
		cfg.Sink = serve(t, func(w http.ResponseWriter, r *http.Request) {
			if e, err := readEvent(w, r); err == nil {
				s.sink.add(e)
			}
		})
	}
	if cfg.FuncTransport == "" {
		cfg.FuncTransport = TransportHTTP
	}
	if cfg.Ticks == "" {
		cfg.Ticks = ticksOff
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Listener = listener
	f.Name = cmp.Or(f.Name, "site")
	s.url, s.stop = "http://"+listener.Addr().String(), start(t, cfg, f)
	return s
}

type answered struct {
	status     int
	retryAfter string
	body       string
}

func (s *site) do(method, path, body string, headers ...string) answered {
	s.t.Helper()
	req, err := http.NewRequestWithContext(testwait.Within(s.t, time.Minute), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	res, err := client.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answered{status: res.StatusCode, retryAfter: res.Header.Get("Retry-After"), body: string(text)}
}

// client keeps no idle connections, which goleak would find.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

func binary(id string) []string {
	return []string{
		"Ce-Specversion", "1.0", "Ce-Id", id, "Ce-Source", "/test", "Ce-Type", jobevent.TypeHeartbeat,
		"Content-Type", "application/json",
	}
}

// serve starts an HTTP server for the test, and returns its address.
func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	var running sync.WaitGroup
	running.Go(func() { _ = server.Serve(listener) })
	t.Cleanup(func() { _ = server.Close(); running.Wait() })
	return "http://" + listener.Addr().String()
}

func (s *site) ping() answered {
	s.t.Helper()
	return s.do("POST", "/", "", "Ce-Specversion", "1.0", "Ce-Id", "1", "Ce-Source", "/test", "Ce-Type", typePing)
}
