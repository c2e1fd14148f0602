package tlsfiles

import (
	"net/http"
	"sync"
	"time"
)

// pingAfter is how long a connection by HTTP/2 may be silent. A server that stands still is left 15 s later.
const pingAfter = 5 * time.Second

// Transport is net/http's transport, as change has made it, with the content that a Client's files have when a
// connection is opened. Open connections keep theirs, so a change of the files begins with new connections.
type Transport struct {
	client *Client
	change func(*http.Transport)

	mu   sync.Mutex
	made files
	base *http.Transport
}

// Transport returns a transport for HTTP; change may be nil.
func (c *Client) Transport(change func(*http.Transport)) *Transport {
	return &Transport{client: c, change: change}
}

// RoundTrip is http.RoundTripper's.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	return t.current().RoundTrip(r)
}

// CloseIdleConnections is for http.Client.CloseIdleConnections.
func (t *Transport) CloseIdleConnections() { t.current().CloseIdleConnections() }

func (t *Transport) current() *http.Transport {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.client.now()
	if t.base != nil && now == t.made {
		return t.base
	}
	if t.base != nil {
		t.base.CloseIdleConnections()
	}
	t.made, t.base = now, http.DefaultTransport.(*http.Transport).Clone()
	t.base.TLSClientConfig = now.config()
	t.base.HTTP2 = &http.HTTP2Config{SendPingTimeout: pingAfter}
	if t.change != nil {
		t.change(t.base)
	}
	return t.base
}
