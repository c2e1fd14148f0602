package client

import (
	"context"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// still is a connection whose reader stands still from an instant on.
type still struct {
	net.Conn
	is *atomic.Bool
}

func (c still) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	for err == nil && c.is.Load() {
		n, err = c.Conn.Read(b)
	}
	return n, err
}

// pipes is a listener whose connections a test makes.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	c, open := <-p
	if !open {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (p pipes) Close() error   { close(p); return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

func TestAConnectionByHTTP2IsLeftIfTheGatewayStandsStill(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var protocols http.Protocols
		protocols.SetUnencryptedHTTP2(true)
		server := http.Server{Protocols: &protocols, Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
		incoming, dialed := make(pipes), 0
		var first atomic.Bool // stands still
		way := withPings(&http.Transport{Protocols: &protocols, DialContext: func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			if dialed++; dialed == 1 {
				theirs = still{theirs, &first}
			}
			incoming <- theirs
			return ours, nil
		}})
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = server.Serve(incoming)
		}()
		c := New("http://gateway", "", WithTransport(way), WithRetries(0))
		ask := func(within time.Duration) error {
			ctx, cancel := context.WithTimeout(t.Context(), within)
			defer cancel()
			_, err := c.Do(ctx, http.MethodGet, "/api/health", "", nil, nil)
			return err
		}
		if err := ask(time.Second); err != nil {
			t.Fatal(err)
		}
		first.Store(true)
		if err := ask(15 * time.Second); err == nil {
			t.Error("it is answered while the gateway stands still")
		}
		<-time.After(6 * time.Second)
		if err := ask(time.Second); err != nil || dialed != 2 {
			t.Errorf("%v, with %d connections", err, dialed)
		}
		way.CloseIdleConnections()
		_ = server.Close()
		<-ended
	})
}
