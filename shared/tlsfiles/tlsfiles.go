// Package tlsfiles makes TLS configurations from files with certificates, keys and CAs, and follows changes of the
// files.
package tlsfiles

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/jobweaver/jobweaver/shared/reload"
)

// File is the file that a setting names. An empty Path means that the setting is not set.
type File struct{ Setting, Path string }

// roots and pair return the current content of files. They are nil if no file is set.
type (
	roots func() *x509.CertPool
	pair  func() *tls.Certificate
)

var http2 = []string{"h2", "http/1.1"}

// Server returns the configuration of a listener, or nil if no file is set. With a CA for clients, a client's
// certificate must be signed by it. A client without a certificate, such as a probe, gets a connection whose state has
// no VerifiedChains.
func Server(cert, key, clientCA File) (*tls.Config, error) {
	if clientCA.Path != "" && cert.Path == "" {
		return nil, fmt.Errorf("%s: is set, and %s is not", clientCA.Setting, cert.Setting)
	}
	ours, err := loadPair(cert, key)
	if err != nil {
		return nil, err
	}
	theirs, err := loadRoots(clientCA)
	if err != nil {
		return nil, err
	}
	if ours == nil {
		return nil, nil
	}
	config := func() *tls.Config {
		c := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: http2, Certificates: []tls.Certificate{*ours()}}
		if theirs != nil {
			c.ClientAuth, c.ClientCAs = tls.VerifyClientCertIfGiven, theirs()
			c.SessionTicketsDisabled = true // a ticket would outlive a removed CA
		}
		return c
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: http2,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return config(), nil },
	}, nil
}

// Client has the trusted CAs and the certificate for connections that this process opens.
type Client struct {
	roots roots // nil: the system's CAs
	pair  pair  // nil: no client certificate
}

// NewClient reads the trusted CAs (without ca: the system's) and the certificate for servers that require one.
func NewClient(ca, cert, key File) (*Client, error) {
	c := &Client{}
	var err error
	if c.roots, err = loadRoots(ca); err != nil {
		return nil, err
	}
	if c.pair, err = loadPair(cert, key); err != nil {
		return nil, err
	}
	return c, nil
}

// Trust makes the client trust the CAs in a setting's PEM instead. An empty pem changes nothing.
func (c *Client) Trust(setting, pem string) error {
	if pem == "" {
		return nil
	}
	pool, err := newPool([]byte(pem))
	if err != nil {
		return fmt.Errorf("%s: %w", setting, err)
	}
	expire := lastExpiry([]byte(pem))
	noteExpiry(setting, func() time.Time { return expire })
	c.roots = func() *x509.CertPool { return pool }
	return nil
}

// Config returns the configuration for connections that are opened now.
func (c *Client) Config() *tls.Config { return c.now().config() }

// files are the contents of a Client's files at one time.
type files struct {
	roots *x509.CertPool
	pair  *tls.Certificate
}

func (c *Client) now() (now files) {
	if c.roots != nil {
		now.roots = c.roots()
	}
	if c.pair != nil {
		now.pair = c.pair()
	}
	return now
}

func (f files) config() *tls.Config {
	config := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: f.roots}
	if f.pair != nil {
		config.Certificates = []tls.Certificate{*f.pair}
	}
	return config
}

func loadRoots(ca File) (roots, error) {
	if ca.Path == "" {
		return nil, nil
	}
	file, err := reload.New(ca.Setting, func(texts [][]byte) (authorities, error) {
		pool, err := newPool(texts[0])
		return authorities{pool, lastExpiry(texts[0])}, err
	}, ca.Path)
	if err != nil {
		return nil, err
	}
	noteExpiry(ca.Setting, func() time.Time { return file.Get().expire })
	return func() *x509.CertPool { return file.Get().pool }, nil
}

// authorities are the CAs of one file.
type authorities struct {
	pool   *x509.CertPool
	expire time.Time // when the last of them expires
}

func newPool(pem []byte) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, errors.New("no certificate in it")
	}
	return pool, nil
}

func loadPair(cert, key File) (pair, error) {
	if cert.Path == "" && key.Path == "" {
		return nil, nil
	}
	for _, missing := range [][2]File{{cert, key}, {key, cert}} {
		if missing[0].Path == "" {
			return nil, fmt.Errorf("%s: is not set, and %s is", missing[0].Setting, missing[1].Setting)
		}
	}
	files, err := reload.New(cert.Setting+" and "+key.Setting, func(texts [][]byte) (*tls.Certificate, error) {
		both, err := tls.X509KeyPair(texts[0], texts[1])
		return &both, err
	}, cert.Path, key.Path)
	if err != nil {
		return nil, err
	}
	noteExpiry(cert.Setting, func() time.Time { return firstExpiry(files.Get().Certificate) })
	return files.Get, nil
}

// IsLoopback reports whether a host is always this machine.
func IsLoopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.Unmap().IsLoopback()
}
