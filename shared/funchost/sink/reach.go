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

// Reach only connects to a sink: a request would be an event, or wake what has scaled to zero. Over TLS it shakes
// hands, or the sink would log each check as a connection that failed.
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
