package client

import (
	"net/http"
	"sync"
	"time"
)

// transport returns the transport of clients without one of their own; nil: the program has replaced
// http.DefaultTransport by a RoundTripper of another kind.
var transport = sync.OnceValue(func() http.RoundTripper {
	base, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return nil
	}
	return withPings(base)
})

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
