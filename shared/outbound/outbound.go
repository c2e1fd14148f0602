// Package outbound calls URLs that came with requests. Whatever the form of a URL, and whatever its name resolves to by
// the time of the call, it connects only to addresses that are public or that the operator allows. It follows no
// redirect and uses no proxy, and bounds the answer in size and time.
//
// Why the connection decides: docs/decisions/security.md#the-connection-decides-where-a-call-may-go
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
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// ErrRefused is in the error of a call that is not made because its target is not allowed.
var ErrRefused = errors.New("not allowed to be called")

// errNoTarget is the error of a call to a name that does not exist, and to one that is not allowed: a difference would
// show which names the installation's name server knows.
type errNoTarget struct {
	host string
	why  error
}

func (e errNoTarget) Error() string {
	return e.host + " does not exist or is " + ErrRefused.Error() + ": OUTBOUND_ALLOW and OUTBOUND_DENY decide"
}

func (e errNoTarget) Unwrap() error { return e.why }

// IsUncalled reports whether a call was not made because of its target: ErrRefused, or a name that does not exist.
func IsUncalled(err error) bool {
	return errors.Is(err, ErrRefused) || errors.As(err, new(errNoTarget))
}

// IsFinal reports whether a retry of the call cannot help, because the URL has an address that is not allowed. A name
// may exist, or lead elsewhere, another time.
func IsFinal(err error) bool { return errors.Is(err, ErrRefused) && !errors.As(err, new(errNoTarget)) }

const (
	maxHeader   = 64 << 10
	dialAtMost  = 10 * time.Second // to resolve the name and connect
	tlsAtMost   = 10 * time.Second
	bodyAtMost  = time.Minute // the longest wait for an answer's body, after its header
	idleAtMost  = 30 * time.Second
	silentFor   = 15 * time.Second // of a connection: then it is probed
	maxIdle     = 100
	maxIdleHost = 4
)

var (
	errDead     = errors.New("it does not answer at its permitted addresses")
	errSlowBody = errors.New("the body of the answer took too long")
)

// Client makes the calls, many at once. It keeps connections for later calls.
type Client struct {
	guard     *guard
	dialer    net.Dialer
	transport *http.Transport
	patience  time.Duration // for a body
}

// New returns a client that reaches public addresses and those of cfg. Close it when it is no longer used. An error
// begins with the setting's name.
func New(cfg Config) (*Client, error) {
	guard, err := newGuard(cfg)
	if err != nil {
		return nil, err
	}
	c := &Client{guard: guard, patience: bodyAtMost}
	c.dialer = net.Dialer{Timeout: dialAtMost, KeepAlive: silentFor}
	c.transport = &http.Transport{
		Proxy:                  nil, // a proxy would make the connection, past the check
		DialContext:            c.dial,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true, // so that the limits count the bytes that arrived
		TLSHandshakeTimeout:    tlsAtMost,
		MaxResponseHeaderBytes: maxHeader,
		MaxIdleConns:           maxIdle,
		MaxIdleConnsPerHost:    maxIdleHost,
		IdleConnTimeout:        idleAtMost,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: silentFor, PingTimeout: silentFor},
	}
	return c, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// dial checks each address immediately before it connects to it. So a name cannot resolve to one address for the check
// and to another for the call.
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
		return nil, errDead // the dialer returns the error of the name's first address
	}
	if err != nil {
		return nil, err
	}
	if c.guard.itself(conn) {
		return nil, errors.Join(ErrRefused, conn.Close())
	}
	return conn, nil
}

// Answer is the response to a call.
type Answer struct {
	Status     int
	Header     http.Header
	Body       []byte
	Truncated  bool          // there was more than Body; without a 2xx also: the rest could not be read
	RetryAfter time.Duration // of a 429 or 503; 0: none
}

// Do makes a call and reads at most maxBody bytes of its answer. The request's context bounds the call; when it ends,
// its cause is the error. IsUncalled is true of the error of a call that was not made. Any other error means that no
// answer came, or a 2xx that was not complete. An error names no resolved address.
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
	// http.Client would follow redirects, and turn the text before an @ into credentials.
	response, err := c.transport.RoundTrip(r.WithContext(ctx))
	if err != nil {
		return nil, ownersError(ctx, r, err)
	}
	defer func() { _ = response.Body.Close() }()
	answer := &Answer{
		Status: response.StatusCode, Header: response.Header, RetryAfter: retryAfter(response, time.Now()),
	}
	slow := time.AfterFunc(c.patience, func() { cancel(errSlowBody) })
	defer slow.Stop()
	if err := answer.read(response.Body, maxBody); err != nil {
		return nil, ownersError(ctx, r, err)
	}
	return answer, nil
}

func (a *Answer) read(body io.Reader, atMost int64) error {
	if a.Status < http.StatusOK { // 101: the body is a connection, which does not end
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

// isName reports whether a name server decides where the host leads.
func isName(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return net.ParseIP(host) == nil && host != "localhost" && !strings.HasSuffix(host, ".localhost")
}

// ownersError returns the error of a call for its job's owner. It shows neither addresses of ours nor what names
// resolve to.
func ownersError(ctx context.Context, r *http.Request, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var (
		name   *net.DNSError
		socket *net.OpError
	)
	switch {
	case isName(r.URL.Hostname()) && (errors.Is(err, ErrRefused) || errors.As(err, &name) && name.IsNotFound):
		return errNoTarget{r.URL.Host, err}
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
