// Package certtest makes certificates for tests, new ones each time.
package certtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// CA signs certificates that are good for as long as its own.
type CA struct {
	PEM []byte

	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// New makes one that is good for an hour.
func New(t testing.TB) *CA {
	t.Helper()
	return NewFor(t, time.Hour)
}

// NewFor makes one that is good for a time.
func NewFor(t testing.TB, lives time.Duration) *CA {
	t.Helper()
	ca := &CA{key: newKey(t), cert: &x509.Certificate{
		Subject:   pkix.Name{CommonName: "test CA " + rand.Text()},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(lives),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}}
	ca.PEM = ca.sign(t, ca.cert, ca.key)
	return ca
}

// DER returns its certificate.
func (ca *CA) DER() []byte {
	block, _ := pem.Decode(ca.PEM)
	return block.Bytes
}

// Pair is a certificate and its key.
type Pair struct{ Cert, Key []byte }

// Issue makes a certificate for a server with these names and addresses, or for a client that has the first name.
func (ca *CA) Issue(t testing.TB, names ...string) Pair {
	t.Helper()
	cert := &x509.Certificate{
		Subject:   pkix.Name{CommonName: names[0]},
		NotBefore: ca.cert.NotBefore, NotAfter: ca.cert.NotAfter, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			cert.IPAddresses = append(cert.IPAddresses, ip)
		} else {
			cert.DNSNames = append(cert.DNSNames, name)
		}
	}
	key := newKey(t)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	return Pair{Cert: ca.sign(t, cert, key), Key: block("PRIVATE KEY", der)}
}

func (ca *CA) sign(t testing.TB, cert *x509.Certificate, key *ecdsa.PrivateKey) []byte {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, cert, ca.cert, key.Public(), ca.key)
	must(t, err)
	return block("CERTIFICATE", der)
}

// Dir is a folder with ca.pem, cert.pem and key.pem. An empty file is left out.
type Dir string

// NewDir makes a folder for the test.
func NewDir(t testing.TB, ca *CA, pair Pair) Dir {
	t.Helper()
	d := Dir(t.TempDir())
	d.Put(t, ca, pair)
	return d
}

// Put replaces the files, as a renewal of certificates does: a reader never sees a part of a file.
func (d Dir) Put(t testing.TB, ca *CA, pair Pair) {
	t.Helper()
	texts := map[string][]byte{d.Cert(): pair.Cert, d.Key(): pair.Key}
	if ca != nil {
		texts[d.CA()] = ca.PEM
	}
	for path, text := range texts {
		if len(text) > 0 {
			must(t, os.WriteFile(path+".new", text, 0o600))
			must(t, os.Rename(path+".new", path))
		}
	}
}

// CA returns the path of ca.pem.
func (d Dir) CA() string { return filepath.Join(string(d), "ca.pem") }

// Cert returns the path of cert.pem.
func (d Dir) Cert() string { return filepath.Join(string(d), "cert.pem") }

// Key returns the path of key.pem.
func (d Dir) Key() string { return filepath.Join(string(d), "key.pem") }

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	return key
}

func block(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
