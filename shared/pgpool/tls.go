package pgpool

import (
	"context"
	"crypto/tls"
	"errors"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/telemetry"
	"github.com/jobweaver/jobweaver/shared/tlsfiles"
)

// Secure reports whether every server in an address is verified by its certificate (sslmode is verify-full or
// verify-ca), or is on this machine.
// Why certificates open the databases: docs/decisions/security.md#no-operator-makes-twelve-passwords
func Secure(url string) bool {
	cfg, err := ReadAddress(url)
	if err != nil {
		return false
	}
	secure := knows(cfg.Host, cfg.TLSConfig)
	for _, other := range cfg.Fallbacks {
		secure = secure && knows(other.Host, other.TLSConfig)
	}
	return secure
}

func knows(host string, by *tls.Config) bool {
	return strings.HasPrefix(host, "/") || tlsfiles.IsLoopback(host) ||
		by != nil && (!by.InsecureSkipVerify || by.VerifyPeerCertificate != nil)
}

// isStranger reports whether the server's certificate failed verification, or the server refused ours.
func isStranger(err error) bool {
	unknown, alert := (*tls.CertificateVerificationError)(nil), tls.AlertError(0)
	return errors.As(err, &unknown) || errors.As(err, &alert)
}

// renewal reads an address again for each new connection, since the file that it stands in, and the files in its
// passfile, sslrootcert, sslcert and sslkey, may have changed. While one cannot be read or does not fit, what was read
// earlier stays.
type renewal struct {
	url string

	mu     sync.Mutex
	good   *pgx.ConnConfig
	broken string // the error that was logged; empty: none
}

// certificateSetting is the name of the certificate in an address, for the metric of its expiry.
const certificateSetting = "sslcert"

// beforeConnect is pgxpool's BeforeConnect; cfg is a copy of the pool's configuration.
func (r *renewal) beforeConnect(ctx context.Context, cfg *pgx.ConnConfig) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, err := ReadAddress(r.url)
	switch {
	case err == nil:
		r.good, r.broken = now, ""
		if now.TLSConfig != nil && len(now.TLSConfig.Certificates) > 0 {
			tlsfiles.NoteExpiry(certificateSetting, now.TLSConfig.Certificates[0].Certificate)
		}
	case err.Error() != r.broken:
		r.broken = err.Error()
		telemetry.Logger(ctx).WarnContext(ctx,
			"a file of the database's address is not usable, the old content stays in use", "error", err)
	}
	if r.good != nil {
		fresh := r.good.Copy()
		cfg.Host, cfg.Port, cfg.Database = fresh.Host, fresh.Port, fresh.Database
		cfg.User, cfg.Password = fresh.User, fresh.Password
		cfg.TLSConfig, cfg.Fallbacks = fresh.TLSConfig, fresh.Fallbacks
	}
	return nil
}
