package dev

import (
	"errors"
	"net"
	"strconv"
	"sync"
	"syscall"
)

// listenOnLoopback listens on both loopback addresses: to some clients localhost is ::1, and they do not try the other
// address. A machine without IPv6 has one of them. The address of the listener is the one of IPv4.
func listenOnLoopback(port int) (net.Listener, error) {
	four, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return nil, err
	}
	six, err := net.Listen("tcp6", net.JoinHostPort("::1", strconv.Itoa(four.Addr().(*net.TCPAddr).Port)))
	if port != 0 && errors.Is(err, syscall.EADDRINUSE) { // clients of localhost would reach another program
		return nil, errors.Join(err, four.Close())
	}
	if err != nil {
		return four, nil
	}
	both := &bothListeners{Listener: four, six: six, accepted: make(chan accepted), closed: make(chan struct{})}
	for _, l := range []net.Listener{four, six} {
		go both.accept(l)
	}
	return both, nil
}

// bothListeners accepts the connections of two listeners.
type bothListeners struct {
	net.Listener

	six      net.Listener
	accepted chan accepted
	closed   chan struct{}
	close    sync.Once
}

type accepted struct {
	conn net.Conn
	err  error
}

func (b *bothListeners) accept(from net.Listener) {
	for {
		conn, err := from.Accept()
		select {
		case b.accepted <- accepted{conn, err}:
		case <-b.closed:
			if err == nil {
				_ = conn.Close()
			}
			return
		}
	}
}

// Accept implements net.Listener.
func (b *bothListeners) Accept() (net.Conn, error) {
	select {
	case a := <-b.accepted:
		return a.conn, a.err
	case <-b.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (b *bothListeners) Close() error {
	err := net.ErrClosed
	b.close.Do(func() {
		close(b.closed)
		err = errors.Join(b.Listener.Close(), b.six.Close())
	})
	return err
}
