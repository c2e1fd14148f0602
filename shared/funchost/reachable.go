package funchost

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/jobweaver/jobweaver/shared/kafkaevent"
)

// Reachable asks whether what events are said to is there: whether the sink takes a connection, or a broker answers.
func Reachable(cfg Config) func(ctx context.Context) error {
	if cfg.Sink != "" {
		return cfg.reachSink
	}
	return func(ctx context.Context) error { return kafkaevent.Answers(ctx, cfg.Kafka) }
}

// reachSink only connects: a request would be an event, or wake what has scaled to zero. Over TLS it shakes hands, or
// the sink would log each ask as a connection that failed.
func (c Config) reachSink(ctx context.Context) error {
	trust, err := c.sinkTrust()
	if err != nil {
		return err
	}
	dial := new(net.Dialer).DialContext
	if strings.HasPrefix(c.Sink, "https:") {
		dial = (&tls.Dialer{Config: trust.Config()}).DialContext
	}
	conn, err := dial(ctx, "tcp", sinkAddress(c.Sink))
	if err != nil {
		return fmt.Errorf("reach sink: %w", err)
	}
	return conn.Close()
}

func sinkAddress(sink string) string {
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
