package funchost

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/certtest"
	"github.com/jobweaver/jobweaver/shared/funchost/probe"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/kafkaevent"
	"github.com/jobweaver/jobweaver/shared/secret"
	"github.com/jobweaver/jobweaver/shared/telemetry"
	"github.com/jobweaver/jobweaver/shared/testwait"
)

func TestHTTPUsesTheCurrentCertificate(t *testing.T) {
	t.Parallel()
	ca := certtest.New(t)
	files := certtest.NewDir(t, nil, ca.Issue(t, "127.0.0.1"))
	s := newSite(t, Config{TLS: TLS{CertFile: files.Cert(), KeyFile: files.Key()}}, Function{Tick: neverTick})
	s.awaitReady(ca)
	for _, path := range []string{probe.LivenessPath, probe.ReadinessPath, "/metrics"} {
		res, err := s.secure(ca, nil, path)
		if err != nil || res.StatusCode != 200 || res.ProtoMajor != 2 {
			t.Errorf("%s: %+v, %v", path, res, err)
		}
	}
	if got := s.do("GET", probe.LivenessPath, ""); got.status != 400 || !strings.Contains(got.body, "HTTPS") {
		t.Errorf("plain text got %+v", got)
	}
	old := &tls.Config{RootCAs: pool(ca), MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}
	if conn, err := tls.Dial("tcp", s.address(), old); err == nil {
		_ = conn.Close()
		t.Error("TLS 1.1 is good enough")
	}

	renewed := certtest.New(t)
	files.Put(t, nil, renewed.Issue(t, "127.0.0.1"))
	testwait.Until(t, "the new certificate", func() bool { _, err := s.secure(renewed, nil, probe.LivenessPath); return err == nil })
	files.Put(t, nil, certtest.Pair{Cert: []byte("no PEM")})
	for began := time.Now(); time.Since(began) < 1100*time.Millisecond; <-time.After(20 * time.Millisecond) {
		if _, err := s.secure(renewed, nil, probe.LivenessPath); err != nil {
			t.Fatalf("a broken file: %v", err)
		}
	}
}

func TestOnlyClientsWithACertificateAreServed(t *testing.T) {
	t.Parallel()
	ca, other := certtest.New(t), certtest.New(t)
	files := certtest.NewDir(t, ca, ca.Issue(t, "127.0.0.1"))
	s := newSite(t, Config{TLS: TLS{CertFile: files.Cert(), KeyFile: files.Key(), ClientCAFile: files.CA()}},
		Function{Tick: neverTick})
	s.awaitReady(ca)
	ours, theirs := ca.Issue(t, "caller"), other.Issue(t, "caller")
	for _, tt := range []struct {
		name, path string
		by         *certtest.Pair
		want       int // 0: no answer
	}{
		{"a probe that shows none", probe.LivenessPath, nil, 200},
		{"another probe that shows none", probe.ReadinessPath, nil, 200},
		{"who shows none", "/metrics", nil, 403},
		{"without a certificate, at a path like a probe's", "//health/liveness", nil, 403},
		{"who shows one", "/metrics", &ours, 200},
		{"who shows one of another CA", probe.LivenessPath, &theirs, 0},
	} {
		res, err := s.secure(ca, tt.by, tt.path)
		if got := status(res); got != tt.want {
			t.Errorf("%s: answered %d, %v", tt.name, got, err)
		}
	}
	files.Put(t, other, certtest.Pair{})
	testwait.Until(t, "the new CA", func() bool { res, _ := s.secure(ca, &theirs, "/metrics"); return status(res) == 200 })
	if res, err := s.secure(ca, &ours, probe.LivenessPath); err == nil {
		t.Errorf("the old CA's: answered %d", res.StatusCode)
	}
}

func TestEventsReachASinkWithATrustedCA(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		config func(sink *certtest.CA, files certtest.Dir) Config
	}{
		{"in a file", func(_ *certtest.CA, files certtest.Dir) Config { return Config{SinkCAFile: files.CA()} }},
		{"as Knative gives it", func(sink *certtest.CA, _ certtest.Dir) Config { return Config{SinkCAs: string(sink.PEM)} }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			sink, ours := certtest.New(t), certtest.New(t)
			own := ours.Issue(t, "127.0.0.1")
			files := certtest.NewDir(t, sink, own)
			got := newSeen()
			address := sinkOver(t, sink.Issue(t, "127.0.0.1"), ours, got)
			cfg := tt.config(sink, files)
			cfg.Sink, cfg.TLS = address, TLS{CertFile: files.Cert(), KeyFile: files.Key()}
			sayOne(t, cfg)
			got.wait(t, 1)
		})
	}
}

func TestASinkWithAnotherCAReceivesNothing(t *testing.T) {
	t.Parallel()
	sink, other := certtest.New(t), certtest.New(t)
	files := certtest.NewDir(t, other, certtest.Pair{})
	got := newSeen()
	cfg := Config{SinkCAFile: files.CA(), Sink: sinkOver(t, sink.Issue(t, "127.0.0.1"), nil, got)}
	publish, closing, err := NewPublisher(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer closing()
	ask := func() error {
		return publish(t.Context(), []jobevent.Item{(&place{t: t}).event("q", "1")})
	}
	if err := ask(); err == nil || !strings.Contains(err.Error(), "certificate signed by unknown authority") {
		t.Errorf("published with %v", err)
	}
	files.Put(t, sink, certtest.Pair{})
	testwait.Until(t, "the new CA", func() bool { return ask() == nil })
}

// sinkOver returns a sink over TLS; with a CA it accepts events only from clients with a certificate of that CA.
func sinkOver(t *testing.T, pair certtest.Pair, clients *certtest.CA, got *seen) (url string) {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if e, err := readEvent(w, r); err == nil {
			got.add(e)
		}
	}))
	cert, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	server.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
	if clients != nil {
		server.TLS.ClientAuth, server.TLS.ClientCAs = tls.RequireAndVerifyClientCert, pool(clients)
	}
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL
}

func sayOne(t *testing.T, cfg Config) {
	t.Helper()
	publish, closing, err := NewPublisher(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer closing()
	if err := publish(testwait.Within(t, time.Minute), []jobevent.Item{(&place{t: t}).event("q", "1")}); err != nil {
		t.Error(err)
	}
}

func TestPlainTextToAnotherMachineIsLoggedOnceOrRefused(t *testing.T) {
	t.Parallel()
	everywhere := &net.TCPAddr{Port: 8080}
	inside := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080}
	broker := func(addrs ...string) kafkaevent.Config { return kafkaevent.Config{Brokers: addrs} }
	secure := TLS{CertFile: "c", KeyFile: "k"}
	for _, tt := range []struct {
		name    string
		cfg     Config
		address net.Addr
		serves  bool
		want    string // the settings; empty: none
	}{
		{"nothing but loopback", Config{Kafka: broker("localhost:1", "127.0.0.1:2", "[::1]:3"),
			database: secret.Of("postgres://u:p@127.0.0.1/d")}, inside, true, ""},
		{"a socket", Config{Kafka: broker("localhost:1"), database: secret.Of("host=/run/postgresql")}, inside, true, ""},
		{"a broker elsewhere", Config{Kafka: broker("localhost:1", "kafka:9092")}, inside, true, "KAFKA_BROKERS"},
		{"a broker elsewhere over TLS", Config{Kafka: kafkaevent.Config{Brokers: []string{"kafka:9092"}, TLSEnabled: true}}, inside, true, ""},
		{"a broker elsewhere that is not used", Config{Kafka: broker("kafka:9092"), Sink: "https://sink"}, inside, true, ""},
		{"a sink elsewhere", Config{Sink: "http://sink"}, inside, true, "K_SINK"},
		{"a database elsewhere", Config{Sink: "http://localhost", database: secret.Of("postgres://u:p@db/d")}, inside, true, "DATABASE_URL"},
		{"a database that need not be who it is", Config{Sink: "http://localhost", database: secret.Of("postgres://u:p@db/d?sslmode=require")}, inside, true, "DATABASE_URL"},
		{"a database that is known", Config{Sink: "http://localhost", database: secret.Of("postgres://u:p@db/d?sslmode=verify-full")}, inside, true, ""},
		{"one of two databases elsewhere", Config{Sink: "http://localhost", database: secret.Of("postgres://u:p@localhost,db/d")}, inside, true, "DATABASE_URL"},
		{"an API on every address", Config{Sink: "http://localhost"}, everywhere, true, "HOST"},
		{"an API on every address over TLS", Config{Sink: "http://localhost", TLS: secure}, everywhere, true, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			ctx := telemetry.WithLogger(t.Context(), slog.New(slog.NewTextHandler(&log, nil)))
			if err := tt.cfg.checkTransport(ctx, tt.serves, tt.address); err != nil {
				t.Errorf("refused: %v", err)
			}
			if lines := strings.Count(log.String(), "\n"); lines > 1 || (tt.want == "") != (lines == 0) ||
				!strings.Contains(log.String(), tt.want) || strings.Contains(log.String(), "u:p") {
				t.Errorf("logged %q", &log)
			}
			tt.cfg.RequireTLS = requireOn
			err := tt.cfg.checkTransport(ctx, tt.serves, tt.address)
			if (err == nil) != (tt.want == "") || err != nil && (!strings.HasPrefix(err.Error(), "REQUIRE_TLS: ") ||
				!strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "u:p")) {
				t.Errorf("required: %v", err)
			}
		})
	}
}

// secure sends a request over TLS, on a new connection, and discards the answer's body.
func (s *site) secure(by *certtest.CA, shown *certtest.Pair, path string) (*http.Response, error) {
	s.t.Helper()
	conf := &tls.Config{RootCAs: pool(by)}
	if shown != nil {
		cert, err := tls.X509KeyPair(shown.Cert, shown.Key)
		if err != nil {
			s.t.Fatal(err)
		}
		conf.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &cert, nil }
	}
	transport := &http.Transport{TLSClientConfig: conf, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(testwait.Within(s.t, time.Minute), http.MethodGet, "https://"+s.address()+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	res, err := transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	_, _ = io.Copy(io.Discard, res.Body)
	return res, res.Body.Close()
}

func (s *site) address() string { return strings.TrimPrefix(s.url, "http://") }

func status(res *http.Response) int {
	if res == nil {
		return 0
	}
	return res.StatusCode
}

func pool(ca *certtest.CA) *x509.CertPool {
	p := x509.NewCertPool()
	p.AppendCertsFromPEM(ca.PEM)
	return p
}

// awaitReady waits until a function is ready, which it is after it has reached its sink once.
func (s *site) awaitReady(by *certtest.CA) {
	s.t.Helper()
	testwait.Until(s.t, "readiness", func() bool {
		res, err := s.secure(by, nil, probe.ReadinessPath)
		return err == nil && res.StatusCode == http.StatusOK
	})
}
