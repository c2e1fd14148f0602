// Package httpserver has what every HTTP server of a function does before its handlers: time limits, the headers that
// restrict browsers, ALLOWED_HOSTS, and the count of requests for which a stop waits.
package httpserver

import (
	"net/http"
	"time"
)

// MaxHeader bounds the request line and the headers; net/http itself adds 4 KiB to MaxHeaderBytes.
const MaxHeader = 16 << 10

// Timeouts bound the parts of a request.
type Timeouts struct {
	Header time.Duration // until its headers have arrived
	Read   time.Duration // until its body has arrived
	Write  time.Duration // until the client has read its answer: includes the body, the work and ?wait=
	Idle   time.Duration // until the next request arrives on its connection
}

// Defaults are the timeouts of every function.
var Defaults = Timeouts{Header: 5 * time.Second, Read: time.Minute, Write: 2 * time.Minute, Idle: 2 * time.Minute}

// Server returns a server with these timeouts.
func (t Timeouts) Server() *http.Server {
	return &http.Server{
		ReadHeaderTimeout: t.Header,
		ReadTimeout:       t.Read,
		WriteTimeout:      t.Write,
		IdleTimeout:       t.Idle,
		MaxHeaderBytes:    MaxHeader - 4<<10,
		ConnContext:       limitUnsent,
		// One HTTP/2 connection can hold many requests: its client must read, and answer pings.
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: 100, WriteByteTimeout: t.Write / 4, SendPingTimeout: t.Idle / 2,
		},
	}
}

// CrossOrigin recognizes the requests that a browser makes for a page of another site.
var CrossOrigin http.CrossOriginProtection

// The headers that restrict browsers. These slices are shared and must not be appended to: an answer with another value
// sets its own.
var (
	noSniff    = []string{"nosniff"}
	noStore    = []string{"no-store"}
	noReferrer = []string{"no-referrer"}
	sameOrigin = []string{"same-origin"}
	noContent  = []string{"default-src 'none'; frame-ancestors 'none'"}
	onlyTLS    = []string{"max-age=31536000"}
	closing    = []string{"close"}
)

// Protect keeps browsers from doing anything with an answer except showing it. No answer permits other sites to read
// it: CORS is off.
func Protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h["X-Content-Type-Options"] = noSniff
		h["Cache-Control"] = noStore
		h["Referrer-Policy"] = noReferrer
		h["Cross-Origin-Opener-Policy"] = sameOrigin
		h["Cross-Origin-Resource-Policy"] = sameOrigin
		h["Content-Security-Policy"] = noContent
		if r.TLS != nil {
			h["Strict-Transport-Security"] = onlyTLS
		}
		if r.ProtoMajor == 1 && len(r.TransferEncoding) > 0 {
			// There may have been a Content-Length too, which net/http removes. A proxy that used it would treat the following
			// bytes as the body, and this server as the next request.
			h["Connection"] = closing
		}
		next.ServeHTTP(w, r)
	})
}
