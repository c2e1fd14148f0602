// Package proxy is a TCP proxy whose connections fail on demand as networks do: they stall, break, lose answers or
// become slow, each fault by itself.
package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
)

// Server forwards the connections that one listener accepts to one target.
type Server struct {
	listener net.Listener
	target   func() string
	route    Route
	stop     context.CancelFunc
	stopped  context.Context
	running  sync.WaitGroup
}

// Route reads as much of a new connection as it needs to choose the connection's link. It returns the bytes read.
type Route func(client io.Reader) (*Link, []byte, error)

// Always is the Route of a listener that serves one client only.
func Always(link *Link) Route {
	return func(io.Reader) (*Link, []byte, error) { return link, nil, nil }
}

// Listen starts a proxy on address, which forwards to target. Nothing has to listen at target yet.
func Listen(address, target string, route Route) (*Server, error) {
	return ListenFor(address, func() string { return target }, route)
}

// ListenFor is Listen for a target that moves: each new connection is forwarded to the current one.
func ListenFor(address string, target func() string, route Route) (*Server, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for %s: %w", target(), err)
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &Server{listener: l, target: target, route: route, stop: stop, stopped: ctx}
	s.running.Go(s.accept)
	return s, nil
}

// Address returns where the proxy listens.
func (s *Server) Address() string { return s.listener.Addr().String() }

// Close breaks all connections and waits until their goroutines have ended.
func (s *Server) Close() error {
	s.stop()
	err := s.listener.Close()
	s.running.Wait()
	return err
}

func (s *Server) accept() {
	for {
		c, err := s.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			s.running.Go(func() { s.serve(c.(*net.TCPConn)) })
		}
	}
}

func (s *Server) serve(client *net.TCPConn) {
	unwatch := context.AfterFunc(s.stopped, func() { _ = client.Close() })
	defer unwatch()
	link, begun, err := s.route(client)
	if err != nil || link.refuses() {
		reset(client)
		return
	}
	upstream, err := net.Dial("tcp", s.target())
	if err != nil {
		reset(client) // as if the client had reached the closed port itself
		return
	}
	c := newConn(link, client, upstream.(*net.TCPConn))
	defer context.AfterFunc(s.stopped, c.reset)()
	if !link.add(c) {
		c.reset()
		return
	}
	defer link.remove(c)
	c.run(begun)
}

// reset closes a connection so that its other end reads "connection reset by peer".
func reset(c *net.TCPConn) {
	_ = c.SetLinger(0)
	_ = c.Close()
}
