package sink

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/jobweaver/jobweaver/shared/tlsfiles"
)

// Reach connects to a sink without a request: that would be an event, or wake a service that has scaled to zero. Over
// TLS it completes the handshake, because a sink could log a connection without one as failed.
func Reach(ctx context.Context, sink string, trust *tlsfiles.Client) error {
	dial := new(net.Dialer).DialContext
	if strings.HasPrefix(sink, "https:") {
		dial = (&tls.Dialer{Config: trust.Config()}).DialContext
	}
	conn, err := dial(ctx, "tcp", address(sink))
	if err != nil {
		return fmt.Errorf("reach sink: %w", err)
	}
	return conn.Close()
}

func address(sink string) string {
	target, err := url.Parse(sink)
	if err != nil {
		return sink
	}
	port := target.Port()
	if port == "" {
		port = target.Scheme // net.Dial knows http and https
	}
	return net.JoinHostPort(target.Hostname(), port)
}
