package httpserver_test

import (
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/funchost/httpserver"
	"github.com/jobweaver/jobweaver/shared/testwait"
)

// The kernel must not take megabytes of an answer that its client does not read: nothing would count them.
func TestAnUnreadAnswerStaysWithItsHandler(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var written atomic.Int64
	over := make(chan struct{})
	server := httpserver.Defaults.Server()
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		defer close(over)
		for part := make([]byte, 16<<10); ; written.Add(int64(len(part))) {
			if _, err := w.Write(part); err != nil {
				return
			}
		}
	})
	go func() { _ = server.Serve(listener) }()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
	if _, err := fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	last, since := int64(-1), time.Now()
	testwait.Until(t, "the handler to wait", func() bool {
		if now := written.Load(); now != last {
			last, since = now, time.Now()
		}
		return last > 0 && time.Since(since) > time.Second
	})
	if last > 512<<10 {
		t.Errorf("it has written %d bytes", last)
	}
	_ = server.Close()
	_ = conn.Close()
	<-over
}
