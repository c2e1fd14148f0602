package client

import (
	"net/http"
	"sync"
	"time"
)

// pinging is a copy of http.DefaultTransport that the clients of a program share, as they do its connections.
var pinging struct {
	sync.Mutex
	of, clone *http.Transport
}

// transport returns the transport of a new client without one of its own; nil: the program has replaced
// http.DefaultTransport by a RoundTripper of another kind.
func transport() http.RoundTripper {
	base, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return nil
	}
	pinging.Lock()
	defer pinging.Unlock()
	if pinging.of != base {
		pinging.of, pinging.clone = base, withPings(base)
	}
	return pinging.clone
}

// pingAfter is how long a connection by HTTP/2 may be silent. An answer to the ping has 15 s.
const pingAfter = 5 * time.Second

// withPings returns a copy of a transport that leaves a connection by HTTP/2 whose server does not answer pings. A
// request that times out takes only a connection by HTTP/1.1 along: all that follow it would go to a gateway that
// stands still, though others run.
func withPings(base *http.Transport) *http.Transport {
	t := base.Clone()
	if t.HTTP2 == nil {
		t.HTTP2 = &http.HTTP2Config{}
	}
	t.HTTP2.SendPingTimeout = pingAfter
	return t
}
