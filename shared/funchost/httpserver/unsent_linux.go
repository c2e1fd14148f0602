package httpserver

import (
	"context"
	"crypto/tls"
	"net"

	"golang.org/x/sys/unix"
)

// maxUnsent bounds what the kernel holds of an answer that its client does not read. The kernel would take several MiB:
// the answer would be over for the function, which then no longer counts its memory, though the container has it.
const maxUnsent = 32 << 10

// limitUnsent does it for a new connection. What the client is ready to receive is not limited.
func limitUnsent(ctx context.Context, conn net.Conn) context.Context {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		if raw, err := tcp.SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) {
				_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, maxUnsent)
			})
		}
	}
	return ctx
}
