package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/jobweaver/jobweaver/functions/gateway"
	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/tlsfiles"
)

func plain(_ context.Context, l *look) {
	for _, d := range l.databases {
		if !pgpool.Secure(d.Address.Reveal()) {
			l.find(d.where, "the server is not verified: sslmode is neither verify-full nor verify-ca",
				"add ?sslmode=verify-full to the address, and sslrootcert if its CA is not the system's")
		}
	}
	for i := range l.Environments {
		e := &l.Environments[i]
		if !e.Host.Kafka.Secure() {
			l.find(e.Name, "KAFKA_BROKERS are reached in plain text", "set KAFKA_TLS_ENABLED=true")
		}
		if e.runs(gateway.Name) && e.Host.TLS.CertFile == "" && !tlsfiles.IsLoopback(e.Host.Host) {
			l.find(e.Name, "the API has plain HTTP on addresses that others reach",
				"set TLS_CERT_FILE and TLS_KEY_FILE, or HOST=127.0.0.1 behind a proxy; in a cluster use --skip tls")
		}
		if e.runs(gateway.Name) && e.Auth == gateway.AuthOff {
			l.find(e.Name, "AUTH is off: every client is an administrator", "remove AUTH=off")
		}
		for setting, address := range map[string]string{"PUBLIC_URL": e.Public.URL, "CALLBACK_URL": e.Callbacks.URL} {
			if u, err := url.Parse(address); err == nil && u.Scheme == "http" && !tlsfiles.IsLoopback(u.Hostname()) {
				l.find(e.Name, setting+" is http: keys and callback secrets pass in plain text", "make it https")
			}
		}
	}
}

func certificates(ctx context.Context, l *look) {
	for i := range l.Environments {
		e := &l.Environments[i]
		for setting, path := range map[string]string{
			"TLS_CERT_FILE": e.Host.TLS.CertFile, "TLS_CLIENT_CA_FILE": e.Host.TLS.ClientCAFile,
			"KAFKA_TLS_CA_FILE": e.Host.Kafka.TLSCAFile, "KAFKA_TLS_CERT_FILE": e.Host.Kafka.TLSCertFile,
			"K_CA_CERTS_FILE": e.Host.SinkCAFile,
		} {
			if path != "" {
				l.file(e.Name+" "+setting, path)
			}
		}
		if e.runs(gateway.Name) && e.Public.URL != "" {
			l.served(ctx, "PUBLIC_URL", e.Public.URL)
		}
	}
	l.each(true, func(d *database) error {
		if conn, is := d.conn.PgConn().Conn().(*tls.Conn); is {
			l.ends(d.where, "the certificate of its server", conn.ConnectionState().PeerCertificates)
		}
		if cfg := d.conn.Config().TLSConfig; cfg != nil {
			for _, pair := range cfg.Certificates {
				l.ends(d.where, "the certificate of its user (sslcert)", parsed(pair.Certificate))
			}
		}
		return nil
	})
	if l.brokers.cfg.TLSEnabled {
		for _, broker := range l.brokers.cfg.Brokers {
			l.dial(ctx, "KAFKA_BROKERS", strings.TrimSpace(broker))
		}
	}
}

// file checks the certificates in a PEM.
func (l *look) file(where, path string) {
	text, err := os.ReadFile(path)
	var all [][]byte
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "CERTIFICATE" {
			all = append(all, block.Bytes)
		}
	}
	if err == nil && len(all) == 0 {
		err = errors.New("it has no certificate")
	}
	if err != nil {
		l.find(where, path+": "+err.Error(), "write the file again")
		return
	}
	l.ends(where, path, parsed(all))
}

func parsed(ders [][]byte) (all []*x509.Certificate) {
	for _, der := range ders {
		if certificate, err := x509.ParseCertificate(der); err == nil {
			all = append(all, certificate)
		}
	}
	return all
}

func (l *look) ends(where, what string, certificates []*x509.Certificate) {
	for _, certificate := range certificates {
		left := certificate.NotAfter.Sub(l.Now())
		name := fmt.Sprintf("%s, %s", what, certificate.Subject)
		switch {
		case left <= 0:
			l.find(where, name+" has expired", "renew it; processes read the new file by themselves")
		case left < l.limits.expires:
			l.find(where, fmt.Sprintf("%s ends in %d days", name, int(left.Hours()/24)),
				"renew it; processes read the new file by themselves")
		default:
			l.fact("%s: %s ends %s", where, name, certificate.NotAfter.UTC().Format(time.DateOnly))
		}
	}
}

// served checks the certificate that clients of a URL get.
func (l *look) served(ctx context.Context, setting, address string) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" {
		return
	}
	port := u.Port()
	if port == "" {
		port = "443"
	}
	l.dial(ctx, setting, net.JoinHostPort(u.Hostname(), port))
}

// dial reads the certificate of a server. It does not verify it: which CAs clients trust, this machine cannot know.
func (l *look) dial(ctx context.Context, setting, at string) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // it sends nothing
	conn, err := dialer.DialContext(ctx, "tcp", at)
	if err != nil {
		l.unseen("%s: the certificate of %s: %v", setting, at, err)
		return
	}
	defer func() { _ = conn.Close() }()
	chain := conn.(*tls.Conn).ConnectionState().PeerCertificates
	l.ends(setting, "the certificate of "+at, chain)
	host, _, err := net.SplitHostPort(at)
	if err == nil && len(chain) > 0 && chain[0].VerifyHostname(host) != nil {
		l.find(setting, "the certificate of "+at+" is not for that name", "issue it for "+host)
	}
}
