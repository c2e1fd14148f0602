package kafkaevent

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"github.com/jobweaver/jobweaver/shared/tlsfiles"
)

// opened returns c with its certificates read, once for all its connections. They are read again when they change.
func (c Config) opened() (Config, error) {
	files := []tlsfiles.File{
		{Setting: "KAFKA_TLS_CA_FILE", Path: c.TLSCAFile},
		{Setting: "KAFKA_TLS_CERT_FILE", Path: c.TLSCertFile},
		{Setting: "KAFKA_TLS_KEY_FILE", Path: c.TLSKeyFile},
	}
	if !c.TLSEnabled {
		for _, file := range files {
			if file.Path != "" {
				return c, fmt.Errorf("%s: is set, and KAFKA_TLS_ENABLED is not", file.Setting)
			}
		}
		return c, nil
	}
	if c.wire != nil {
		return c, nil
	}
	var err error
	c.wire, err = tlsfiles.NewClient(files[0], files[1], files[2])
	return c, err
}

// checked returns c opened, or why it cannot be used.
func (c Config) checked() (Config, error) {
	c, err := c.opened()
	if err != nil {
		return c, err
	}
	_, err = c.Sarama()
	return c, err
}

// Secure reports whether connections to the brokers are encrypted or do not leave this machine.
func (c Config) Secure() bool {
	for _, addr := range c.addrs() {
		host, _, err := net.SplitHostPort(addr)
		if !c.TLSEnabled && (err != nil || !tlsfiles.IsLoopback(host)) {
			return false
		}
	}
	return true
}

// dialer connects to brokers, with TLS of its own: sarama would keep the certificates with which it was created.
type dialer struct {
	wire *tlsfiles.Client
	dial func(network, addr string) (net.Conn, error)
}

// Dial implements sarama's Dialer.
func (d dialer) Dial(network, addr string) (net.Conn, error) {
	if d.dial != nil {
		return d.dial(network, addr)
	}
	plain := net.Dialer{Timeout: dialTimeout}
	if d.wire == nil {
		return plain.Dial(network, addr)
	}
	secure := tls.Dialer{NetDialer: &plain, Config: d.wire.Config()}
	conn, err := secure.DialContext(context.Background(), network, addr)
	if unknown := (*tls.CertificateVerificationError)(nil); errors.As(err, &unknown) {
		return nil, fmt.Errorf("broker %s is not who it should be: %w", addr, err)
	}
	if err != nil {
		return nil, err
	}
	return conn, nil
}
