package kafkaevent

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

// groupClient is a sarama client that talks to the group's coordinator over connections of its own,
// as Java's consumer does. Sarama locks a connection from a request to its answer, so on a shared one
// heartbeats, joins and commits would wait behind every long poll.
type groupClient struct {
	sarama.Client
	coordination sarama.Client
	lines        *lines
}

func openGroupClient(cfg Config) (*groupClient, error) {
	c := &groupClient{lines: newLines(cfg)}
	var err error
	if c.Client, err = openClient(cfg, c.lines.use); err != nil {
		return nil, err
	}
	c.coordination, err = openClient(cfg, func(s *sarama.Config) {
		c.lines.use(s)
		// The answer to a join comes when every member has joined.
		s.Net.ReadTimeout = rebalanceTimeout + 15*time.Second
	})
	if err != nil {
		_ = c.Client.Close()
		return nil, err
	}
	return c, nil
}

func openClient(cfg Config, change func(*sarama.Config)) (sarama.Client, error) {
	s, err := cfg.Sarama()
	if err != nil {
		return nil, err
	}
	change(s)
	client, err := sarama.NewClient(cfg.addrs(), s)
	if err != nil {
		return nil, cfg.unreached(err)
	}
	return client, nil
}

// unreached adds the possible cause if a broker only closes the connection, as some do after a wrong password.
func (c Config) unreached(err error) error {
	at := strings.Join(c.addrs(), ",")
	switch {
	case !errors.Is(err, io.EOF):
		return fmt.Errorf("connect to %s: %w", at, err)
	case c.SASLMechanism != "":
		return fmt.Errorf("connect to %s: it hangs up, does SASL know name, password and mechanism? %w", at, err)
	default:
		return fmt.Errorf("connect to %s: it hangs up, does it want TLS or SASL? %w", at, err)
	}
}

// Coordinator overrides the fetching client's.
func (c *groupClient) Coordinator(group string) (*sarama.Broker, error) {
	return c.coordination.Coordinator(group)
}

// RefreshCoordinator overrides the fetching client's.
func (c *groupClient) RefreshCoordinator(group string) error {
	return c.coordination.RefreshCoordinator(group)
}

func (c *groupClient) close() {
	_ = c.Client.Close() // neither fails when closed only once
	_ = c.coordination.Close()
}

// lines has a client's connections. Closing them is the only way to end a call that sarama makes without a context:
// sarama's Close waits for that call.
type lines struct {
	dialer dialer

	mu   sync.Mutex
	open map[*line]bool
	down bool
}

type line struct {
	net.Conn
	of *lines
}

func newLines(cfg Config) *lines {
	return &lines{dialer: dialer{cfg.wire}, open: map[*line]bool{}}
}

func (l *lines) use(s *sarama.Config) {
	s.Net.Proxy.Dialer = l
}

// Dial implements sarama's Dialer.
func (l *lines) Dial(network, addr string) (net.Conn, error) {
	conn, err := l.dialer.Dial(network, addr)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down {
		_ = conn.Close()
		return nil, net.ErrClosed
	}
	opened := &line{Conn: conn, of: l}
	l.open[opened] = true
	return opened, nil
}

func (l *line) Close() error {
	l.of.mu.Lock()
	delete(l.of.open, l)
	l.of.mu.Unlock()
	return l.Conn.Close()
}

// cut ends all calls, those under way and later ones.
func (l *lines) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = true
	for opened := range l.open {
		_ = opened.Conn.Close()
	}
}
