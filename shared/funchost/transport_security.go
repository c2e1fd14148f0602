package funchost

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/jobweaver/jobweaver/shared/funchost/probe"
	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/telemetry"
	"github.com/jobweaver/jobweaver/shared/tlsfiles"
)

// TLS has the files with which HTTP is served. They are read again when they change.
type TLS struct {
	CertFile     string `envconfig:"TLS_CERT_FILE" desc:"PEM of the function's certificate and its intermediates: HTTP is served as https, with probes and metrics, and K_SINK gets it as a client certificate on request"`
	KeyFile      string `envconfig:"TLS_KEY_FILE" desc:"PEM of the certificate's key"`
	ClientCAFile string `envconfig:"TLS_CLIENT_CA_FILE" desc:"PEM of the CAs of permitted clients: clients without such a certificate get 403, except for probes"`
}

func (c TLS) cert() tlsfiles.File { return tlsfiles.File{Setting: "TLS_CERT_FILE", Path: c.CertFile} }
func (c TLS) key() tlsfiles.File  { return tlsfiles.File{Setting: "TLS_KEY_FILE", Path: c.KeyFile} }

// Server returns the TLS configuration; nil: HTTP uses plain text.
func (c TLS) Server() (*tls.Config, error) {
	return tlsfiles.Server(c.cert(), c.key(), tlsfiles.File{Setting: "TLS_CLIENT_CA_FILE", Path: c.ClientCAFile})
}

// guard refuses clients without a certificate of a CA for clients, if there is such a CA. It lets probes through: a
// kubelet has no certificate.
func (c TLS) guard(routes http.Handler) http.Handler {
	if c.ClientCAFile == "" {
		return routes
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.TLS.VerifiedChains) == 0 && r.URL.Path != probe.LivenessPath && r.URL.Path != probe.ReadinessPath {
			http.Error(w, "a client certificate is needed", http.StatusForbidden)
			return
		}
		routes.ServeHTTP(w, r)
	})
}

// sinkTrust returns the certificates by which this process and K_SINK authenticate each other.
func (c Config) sinkTrust() (*tlsfiles.Client, error) {
	ca := tlsfiles.File{Setting: "K_CA_CERTS_FILE", Path: c.SinkCAFile}
	client, err := tlsfiles.NewClient(ca, c.TLS.cert(), c.TLS.key())
	if err != nil {
		return nil, err
	}
	return client, client.Trust("K_CA_CERTS", c.SinkCAs)
}

// checkTransport refuses plain text if REQUIRE_TLS is on; otherwise it warns once.
func (c Config) checkTransport(ctx context.Context, serves bool, address net.Addr) error {
	plain := c.plain()
	if c.TLS.CertFile == "" && !onLoopback(address) && (serves || c.RequireTLS == requireOn) {
		plain = append(plain, fmt.Sprintf("HOST and PORT (%s without TLS_CERT_FILE)", address))
	}
	if err := c.insist(plain); err != nil || len(plain) == 0 {
		return err
	}
	telemetry.Logger(ctx).WarnContext(ctx, "others on the network can read unencrypted connections", "settings", plain)
	return nil
}

func (c Config) insist(plain []string) error {
	if c.RequireTLS != requireOn || len(plain) == 0 {
		return nil
	}
	return fmt.Errorf("REQUIRE_TLS: is on, and there would be plain text by %s", strings.Join(plain, ", "))
}

// plain returns the settings by which the process would send plain text to another machine.
func (c Config) plain() (settings []string) {
	if c.database.IsSet() && !pgpool.Secure(c.database.Reveal()) {
		settings = append(settings, "DATABASE_URL (sslmode is neither verify-full nor verify-ca)")
	}
	settings = append(settings, c.plainSettings...)
	if setting := c.Trace.Plain(); setting != "" {
		settings = append(settings, setting+" (http)")
	}
	switch target, err := url.Parse(c.Sink); {
	case c.Sink == "":
		if !c.alone && !c.Kafka.Secure() {
			settings = append(settings, "KAFKA_BROKERS (without KAFKA_TLS_ENABLED)")
		}
	case err == nil && target.Scheme == "http" && !tlsfiles.IsLoopback(target.Hostname()):
		settings = append(settings, "K_SINK (http)")
	}
	return settings
}
