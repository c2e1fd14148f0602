package funchost

import (
	"bytes"
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/certtest"
	"github.com/jobweaver/jobweaver/shared/funchost/httpserver"
	"github.com/jobweaver/jobweaver/shared/testwait"
)

// secured returns a function that serves HTTP/2, and a client for it.
func secured(t *testing.T, handler http.HandlerFunc, serving httpserver.Timeouts) (*site, *http.Transport) {
	t.Helper()
	ca := certtest.New(t)
	files := certtest.NewDir(t, nil, ca.Issue(t, "127.0.0.1"))
	s := newSite(t, Config{
		FuncTransport: TransportKafka, timeouts: serving, TLS: TLS{CertFile: files.Cert(), KeyFile: files.Key()},
	}, Function{HTTP: handler})
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool(ca)}, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return s, transport
}

func (s *site) overTLS(t *testing.T, method, path string, body io.Reader) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(testwait.Within(t, patient), method, "https://"+s.address()+path, body)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

func TestAnswersOverTLSHaveStrictTransportSecurity(t *testing.T) {
	t.Parallel()
	s, transport := secured(t, func(http.ResponseWriter, *http.Request) {}, httpserver.Timeouts{})
	res, err := transport.RoundTrip(s.overTLS(t, http.MethodGet, "/", nil))
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if got := res.Header.Get("Strict-Transport-Security"); got != "max-age=31536000" || res.ProtoMajor != 2 {
		t.Errorf("HTTP/%d, Strict-Transport-Security %q", res.ProtoMajor, got)
	}
}

func TestHeadersHaveALimitInHTTP2(t *testing.T) {
	t.Parallel()
	s, transport := secured(t, func(_ http.ResponseWriter, r *http.Request) {
		if len(r.Header.Get("X-A")) > httpserver.MaxHeader {
			t.Error("it was let in")
		}
	}, httpserver.Timeouts{})
	req := s.overTLS(t, http.MethodGet, "/", nil)
	req.Header.Set("X-A", strings.Repeat("a", httpserver.MaxHeader+1))
	// The server has advertised its limit, so the client itself refuses to send more.
	if res, err := transport.RoundTrip(req); err == nil {
		_ = res.Body.Close()
		if res.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("answered %d", res.StatusCode)
		}
	}
}

func TestASlowHTTP2ClientIsDisconnected(t *testing.T) {
	t.Parallel()
	// The handshake, which must succeed, may take as long as the shortest limit.
	t.Run("in a body", func(t *testing.T) {
		t.Parallel()
		ended := make(chan error, 1)
		s, transport := secured(t, func(_ http.ResponseWriter, r *http.Request) {
			_, err := io.Copy(io.Discard, r.Body)
			ended <- err
		}, hasty(unhurried, fair))
		body, _ := io.Pipe() // sends no byte
		answered := make(chan struct{})
		go func() {
			defer close(answered)
			if res, err := transport.RoundTrip(s.overTLS(t, http.MethodPost, "/", body)); err == nil {
				_ = res.Body.Close()
			}
		}()
		if err := await(t, "the end of the body", ended); err == nil {
			t.Error("it was whole")
		}
		_ = body.Close()
		<-answered
	})
	t.Run("in reading the answer", func(t *testing.T) {
		t.Parallel()
		ended := make(chan error, 1)
		s, transport := secured(t, func(w http.ResponseWriter, _ *http.Request) {
			var err error
			for megabyte := bytes.Repeat([]byte("a"), 1<<20); err == nil; {
				_, err = w.Write(megabyte)
			}
			ended <- err
		}, httpserver.Timeouts{Header: unhurried, Read: unhurried, Write: fair, Idle: unhurried})
		req := s.overTLS(t, http.MethodGet, "/", nil)
		res, err := transport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if err := await(t, "the end of the answer", ended); err == nil || req.Context().Err() != nil {
			t.Errorf("%v, and who asked gave up: %v", err, req.Context().Err())
		}
	})
}

func TestTheRequestsOfAnHTTP2ConnectionAreBounded(t *testing.T) {
	t.Parallel()
	server := httpserver.Defaults.Server()
	if server.HTTP2.MaxConcurrentStreams > 100 || server.ReadHeaderTimeout <= 0 || server.ReadTimeout <= 0 ||
		server.WriteTimeout < time.Minute+time.Minute/2 || server.IdleTimeout <= 0 {
		t.Errorf("got %+v", server)
	}
}
