package installation

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"

	"github.com/jobweaver/jobweaver/infra/laptop/freeport"
	"github.com/jobweaver/jobweaver/local/suites/chaos/proxy"
)

// network holds the links of all connections that go through a proxy.
type network struct {
	mu      sync.Mutex
	links   map[Pair]*proxy.Link
	servers []*proxy.Server
}

// Pair names a link: a function's process, a broker or a standby, and the server that it speaks to.
type Pair struct{ From, To string }

func (p Pair) String() string { return p.From + "→" + p.To }

func newNetwork() *network { return &network{links: map[Pair]*proxy.Link{}} }

func (n *network) link(from, to string) *proxy.Link {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := Pair{From: from, To: to}
	if n.links[p] == nil {
		n.links[p] = proxy.NewLink()
	}
	return n.links[p]
}

// listen starts a proxy to a server's port and returns the proxy's port.
func (n *network) listen(port int, route proxy.Route) (int, error) {
	own, err := freeport.Pick()
	if err != nil {
		return 0, err
	}
	return own, n.listenAt(own, port, route)
}

func (n *network) listenAt(own, port int, route proxy.Route) error {
	return n.listenFor(own, func() int { return port }, route)
}

// listenFor is listenAt for a server that moves to another port.
func (n *network) listenFor(own int, port func() int, route proxy.Route) error {
	server, err := proxy.ListenFor(loopback(own), func() string { return loopback(port()) }, route)
	if err != nil {
		return err
	}
	n.servers = append(n.servers, server)
	return nil
}

// kafkaClients routes the connections to a broker by client id: functions have a KAFKA_CLIENT_ID, and brokers fetch
// from each other as broker-<n>-fetcher-<m>.
func (n *network) kafkaClients(broker string) proxy.Route {
	return proxy.ByClientID(func(id string) *proxy.Link {
		if number, found := strings.CutPrefix(id, "broker-"); found {
			number, _, _ = strings.Cut(number, "-")
			id = "kafka-" + number
		}
		return n.link(id, broker)
	})
}

// Set makes all of these links fail in the same way.
func (n *network) Set(f proxy.Fault, links ...Pair) {
	for _, l := range links {
		n.link(l.From, l.To).Set(f)
	}
}

func (n *network) close() error {
	var errs []error
	for _, s := range n.servers {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// ports picks n free ports.
func ports(n int) (list []int, err error) {
	for range n {
		port, err := freeport.Pick()
		if err != nil {
			return nil, fmt.Errorf("pick ports: %w", err)
		}
		list = append(list, port)
	}
	return list, nil
}
