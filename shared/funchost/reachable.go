package funchost

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
)

// Reachable asks whether what events are said to, the sink or one of the brokers, can be connected to.
func Reachable(cfg Config) func(ctx context.Context) error {
	addresses := cfg.Kafka.Brokers
	if cfg.Sink != "" {
		addresses = []string{sinkAddress(cfg.Sink)}
	}
	return func(ctx context.Context) error {
		var dialer net.Dialer
		var failures []error
		for _, address := range addresses {
			conn, err := dialer.DialContext(ctx, "tcp", strings.TrimSpace(address))
			if err == nil {
				return conn.Close()
			}
			failures = append(failures, err)
		}
		return fmt.Errorf("reach broker: %w", errors.Join(failures...))
	}
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
