package tlsfiles

import (
	"crypto/x509"
	"encoding/pem"
	"sync"
	"time"
)

// expiries has a function for each setting whose certificates this process has loaded. They belong to the process, as
// its settings do.
var expiries sync.Map // by setting; func() time.Time

func noteExpiry(setting string, expiry func() time.Time) { expiries.Store(setting, expiry) }

// NoteExpiry notes when a certificate expires that this package has not loaded.
func NoteExpiry(setting string, certificate [][]byte) {
	at := firstExpiry(certificate)
	noteExpiry(setting, func() time.Time { return at })
}

// Expiries returns when the certificates of this process expire, by the setting that names them: a certificate with its
// chain when the first of them expires, CAs when the last one does.
func Expiries() map[string]time.Time {
	all := map[string]time.Time{}
	expiries.Range(func(setting, expiry any) bool {
		if at := expiry.(func() time.Time)(); !at.IsZero() {
			all[setting.(string)] = at
		}
		return true
	})
	return all
}

// firstExpiry returns when the first certificate of a chain expires; zero if none can be read.
func firstExpiry(chain [][]byte) (first time.Time) {
	for _, der := range chain {
		if c, err := x509.ParseCertificate(der); err == nil && (first.IsZero() || c.NotAfter.Before(first)) {
			first = c.NotAfter
		}
	}
	return first
}

// lastExpiry returns when the last certificate of a PEM expires; zero if none can be read.
func lastExpiry(text []byte) (last time.Time) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if c, err := x509.ParseCertificate(block.Bytes); err == nil && c.NotAfter.After(last) {
			last = c.NotAfter
		}
	}
	return last
}
