// Package outbound calls URLs that came with requests. Whatever a URL says, and whatever its name resolves to by the
// time it is called, no connection is made to an address that is not public or allowed by the operator. No redirect
// is followed and no proxy asked, and what comes back is bounded in size and time.
package outbound

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// ErrRefused is in the error of a call that is not made because of where it would go. It is no use to try it again.
var ErrRefused = errors.New("not allowed to be called")

const (
	maxHeader   = 64 << 10
	dialAtMost  = 10 * time.Second // name and connection
	tlsAtMost   = 10 * time.Second
	bodyAtMost  = time.Minute // for an answer's body, once its header is there
	idleAtMost  = 30 * time.Second
	silentFor   = 15 * time.Second // of a connection: whether the other side is still there is asked then
	maxIdle     = 100
	maxIdleHost = 4
)

var (
	errDead     = errors.New("it does not answer at the addresses that are allowed to be called")
	errSlowBody = errors.New("the answer began, and its body took too long")
)

// Client makes the calls. It is good for many at once, and keeps connections for the next.
type Client struct {
	guard     *guard
	dialer    net.Dialer
	transport *http.Transport
	patience  time.Duration // for a body
}

// New returns a client that reaches public addresses and those of cfg. Close it when it is no longer used. An error
// begins with the setting.
func New(cfg Config) (*Client, error) {
	guard, err := newGuard(cfg)
	if err != nil {
		return nil, err
	}
	c := &Client{guard: guard, patience: bodyAtMost}
	c.dialer = net.Dialer{Timeout: dialAtMost, KeepAlive: silentFor}
	c.transport = &http.Transport{
		Proxy:                  nil, // a proxy would connect for us, past the check
		DialContext:            c.dial,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true, // what is counted is what came
		TLSHandshakeTimeout:    tlsAtMost,
		MaxResponseHeaderBytes: maxHeader,
		MaxIdleConns:           maxIdle,
		MaxIdleConnsPerHost:    maxIdleHost,
		IdleConnTimeout:        idleAtMost,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: silentFor, PingTimeout: silentFor},
	}
	return c, nil
}

// Close lets go of connections that nothing is using.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// dial looks at each address that is connected to, as late as that can be done, so a name cannot be one thing when it
// is checked and another when it is called.
func (c *Client) dial(ctx context.Context, network, address string) (net.Conn, error) {
	var tried atomic.Bool
	if c.guard.deniesName(address) {
		return nil, ErrRefused
	}
	dialer := c.dialer
	dialer.ControlContext = func(ctx context.Context, _, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil || !c.guard.allows(to) {
			return ErrRefused
		}
		if own, err := c.guard.denied.address(ctx, cmp.Or(dialer.Resolver, net.DefaultResolver), to); own || err != nil {
			return cmp.Or(err, ErrRefused)
		}
		tried.Store(true)
		return nil
	}
	conn, err := dialer.DialContext(ctx, network, address)
	if tried.Load() && errors.Is(err, ErrRefused) {
		return nil, errDead // of the addresses of a name, the error is of the first
	}
	if err != nil {
		return nil, err
	}
	if c.guard.itself(conn) {
		return nil, errors.Join(ErrRefused, conn.Close())
	}
	return conn, nil
}

// Answer is what came back.
type Answer struct {
	Status     int
	Header     http.Header
	Body       []byte
	Truncated  bool          // there was more than Body; of an answer that is no 2xx, or it could not be read
	RetryAfter time.Duration // what a 429 or 503 asks for; 0: nothing
}

// Do makes a call and reads at most maxBody bytes of its answer. The request's context bounds it, and its cause is
// the error when it ends. ErrRefused is in the error of a call that was not made; any other means that the answer
// did not come, or a 2xx not whole. An error names no address that was looked up.
func (c *Client) Do(r *http.Request, maxBody int64) (*Answer, error) {
	span := telemetry.Call(r)
	answer, err := c.do(r, maxBody)
	status := 0
	if answer != nil {
		status = answer.Status
	}
	span.Called(status, err)
	return answer, err
}

func (c *Client) do(r *http.Request, maxBody int64) (*Answer, error) {
	if err := checkTarget(r.URL); err != nil {
		return nil, fmt.Errorf("%w: the URL %w", ErrRefused, err)
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	// Not by http.Client: it follows redirects, and makes credentials of what stands before an @.
	response, err := c.transport.RoundTrip(r.WithContext(ctx))
	if err != nil {
		return nil, tell(ctx, r, err)
	}
	defer func() { _ = response.Body.Close() }()
	answer := &Answer{
		Status: response.StatusCode, Header: response.Header, RetryAfter: retryAfter(response, time.Now()),
	}
	slow := time.AfterFunc(c.patience, func() { cancel(errSlowBody) })
	defer slow.Stop()
	if err := answer.read(response.Body, maxBody); err != nil {
		return nil, tell(ctx, r, err)
	}
	return answer, nil
}

func (a *Answer) read(body io.Reader, atMost int64) error {
	if a.Status < http.StatusOK { // 101: there is a connection, and no body to end
		a.Truncated = true
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(body, atMost+1))
	if err != nil && a.Status/100 == 2 {
		return err
	}
	a.Truncated = err != nil || int64(len(text)) > atMost
	a.Body = text[:min(int64(len(text)), atMost)]
	return nil
}

// tell is the error of a call. Who asked for it is not told which addresses are ours or what names resolve to.
func tell(ctx context.Context, r *http.Request, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var (
		name   *net.DNSError
		socket *net.OpError
	)
	switch {
	case errors.Is(err, ErrRefused):
		return fmt.Errorf("%s is %w: OUTBOUND_ALLOW and OUTBOUND_DENY decide", r.URL.Host, ErrRefused)
	case errors.As(err, &name):
		bare := *name
		bare.Server = ""
		return &bare
	case errors.As(err, &socket):
		return fmt.Errorf("%s %s: %w", socket.Op, r.URL.Host, socket.Err)
	}
	return err
}
