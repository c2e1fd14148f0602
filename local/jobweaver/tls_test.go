package main

import (
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
	"github.com/jobweaver/jobweaver/shared/certtest"
)

func TestCommandLineVerifiesTheAPIAndPresentsACertificate(t *testing.T) {
	ca := certtest.New(t)
	pair := ca.Issue(t, "127.0.0.1")
	cert, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(ca.PEM)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("{}"))
	}))
	server.TLS = &tls.Config{
		Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients,
		// With TLS 1.3 a client is refused while it sends its request, and may only see a broken connection.
		MaxVersion: tls.VersionTLS12,
	}
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.StartTLS()
	t.Cleanup(server.Close)
	files := certtest.NewDir(t, ca, ca.Issue(t, "me"))
	t.Setenv("JOBWEAVER_URL", server.URL)
	ask := func() error {
		_, err := cli.API(newRoot()).Do(t.Context(), http.MethodGet, "/api/me", "", nil, nil)
		return err
	}
	if err := ask(); err == nil || !strings.Contains(err.Error(), "unknown authority") {
		t.Errorf("without JOBWEAVER_CA_FILE: %v", err)
	}
	t.Setenv("JOBWEAVER_CA_FILE", files.CA())
	if err := ask(); err == nil || !strings.Contains(err.Error(), "tls: handshake failure") {
		t.Errorf("without JOBWEAVER_CERT_FILE: %v", err)
	}
	t.Setenv("JOBWEAVER_CERT_FILE", files.Cert())
	if err := ask(); err == nil || !strings.Contains(err.Error(), "JOBWEAVER_KEY_FILE: is not set") {
		t.Errorf("without JOBWEAVER_KEY_FILE: %v", err)
	}
	t.Setenv("JOBWEAVER_KEY_FILE", files.Key())
	if err := ask(); err != nil {
		t.Error(err)
	}
}
