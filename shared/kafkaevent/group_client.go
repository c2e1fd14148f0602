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

// groupClient is a sarama client with connections of their own for requests that a broker answers late. It answers the
// requests of a connection one after another, so on a shared one all others would wait behind a fetch, which is a long
// poll, or behind a join, which ends when every member has joined. A member that takes over partitions asks for two
// offsets of each, one after another: behind long polls, nine partitions without new records took it eight seconds.
type groupClient struct {
	sarama.Client // for metadata and offsets
	fetching      sarama.Client
	coordination  sarama.Client
	lines         *lines
}

func openGroupClient(cfg Config) (*groupClient, error) {
	c := &groupClient{lines: newLines(cfg)}
	waits := func(s *sarama.Config) {
		c.lines.use(s)
		s.Net.ReadTimeout = rebalanceTimeout + 15*time.Second
	}
	for _, client := range []struct {
		opened *sarama.Client
		change func(*sarama.Config)
	}{{&c.Client, c.lines.use}, {&c.fetching, c.lines.use}, {&c.coordination, waits}} {
		var err error
		if *client.opened, err = openClient(cfg, client.change); err != nil {
			c.close()
			return nil, err
		}
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

// Coordinator overrides the one of the client for metadata.
func (c *groupClient) Coordinator(group string) (*sarama.Broker, error) {
	return c.coordination.Coordinator(group)
}

// RefreshCoordinator overrides the one of the client for metadata.
func (c *groupClient) RefreshCoordinator(group string) error {
	return c.coordination.RefreshCoordinator(group)
}

// LeaderAndEpoch returns the broker to fetch from.
func (c *groupClient) LeaderAndEpoch(topic string, partition int32) (*sarama.Broker, int32, error) {
	leader, epoch, err := c.Client.LeaderAndEpoch(topic, partition)
	if err != nil {
		return nil, 0, err
	}
	broker, err := c.Broker(leader.ID())
	if err != nil || broker.Addr() != leader.Addr() { // it is new to the fetching client
		if err = c.fetching.RefreshMetadata(topic); err == nil {
			broker, err = c.Broker(leader.ID())
		}
	}
	return broker, epoch, err
}

// Broker returns the connection to fetch over.
func (c *groupClient) Broker(id int32) (*sarama.Broker, error) { return c.fetching.Broker(id) }

func (c *groupClient) close() {
	for _, client := range []sarama.Client{c.Client, c.fetching, c.coordination} {
		if client != nil {
			_ = client.Close() // it does not fail when closed only once
		}
	}
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
	return &lines{dialer: dialer{cfg.wire, cfg.Dial}, open: map[*line]bool{}}
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
