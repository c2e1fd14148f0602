package pgpool

import (
	"crypto/tls"
	"errors"
	"strings"

	"github.com/jobweaver/jobweaver/shared/tlsfiles"
)

// Secure reports whether every server in an address is verified by its certificate (sslmode is verify-full or
// verify-ca), or is on this machine.
// Why certificates open the databases: docs/decisions/security.md#no-operator-makes-twelve-passwords
func Secure(address string) bool {
	secure := true
	for one := range strings.SplitSeq(address, between) {
		cfg, err := ReadAddress(one)
		if err != nil {
			return false
		}
		secure = secure && knows(cfg.Host, cfg.TLSConfig)
		for _, other := range cfg.Fallbacks {
			secure = secure && knows(other.Host, other.TLSConfig)
		}
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
